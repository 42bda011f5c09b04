//! The other end of deliveries and of wrk: a process that takes POSTs as fast as it can and notes
//! when each came.
//!
//! The path selects the behaviour: `/k/…` is taken, `/u/…` too and not counted, `/c/…` is taken and
//! the connection closed, `/h/…` never answered, `/f/…` refused with 503 the first time. `GET
//! /count` reports how many came since `GET /reset`, `GET /times` for each its `Abreast-Offset` and
//! when it came, `GET /repeats` the time between refusal and repeat of each.

use crate::http::Http;
use crate::run::{Server, log_path, wait_until};
use crate::settings::Settings;
use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The first argument of a bench that is to be a receiver.
pub(crate) const ARGUMENT: &str = "receive";

/// Nanoseconds of a clock that all processes share.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64
}

/// A receiver that runs.
pub(crate) struct Receiver {
    pub(crate) server: Server,
    pub(crate) port: u16,
    http: Http,
}

impl Receiver {
    pub(crate) fn start(settings: &Settings) -> Result<Self> {
        let log = log_path(&settings.folder, "receiver")?;
        let mut command = Command::new(std::env::current_exe()?);
        let server = Server::start(command.arg(ARGUMENT), &log)?;
        let mut port = None;
        wait_until("starting the receiver", Duration::from_secs(10), || {
            port = std::fs::read_to_string(&log)?
                .strip_suffix('\n')
                .and_then(|text| text.parse().ok());
            Ok(port.is_some())
        })?;
        let port = port.context("no port")?;
        Ok(Self { server, port, http: Http::connect(&format!("http://127.0.0.1:{port}/"))? })
    }

    /// Forgets what came.
    pub(crate) fn reset(&mut self) -> Result<()> {
        self.http.get_ok("/reset").map(drop)
    }

    /// Waits until so many came.
    pub(crate) fn wait(&mut self, count: usize, limit: Duration) -> Result<()> {
        wait_until("receiving", limit, || Ok(self.count()? >= count))
    }

    pub(crate) fn count(&mut self) -> Result<usize> {
        Ok(String::from_utf8(self.http.get_ok("/count")?)?.trim().parse()?)
    }

    /// Number of the notification, and when it came.
    pub(crate) fn times(&mut self) -> Result<Vec<(u64, u64)>> {
        let text = String::from_utf8(self.http.get_ok("/times")?)?;
        let pair = |line: &str| {
            line.split_once(' ').and_then(|(one, two)| Some((one.parse().ok()?, two.parse().ok()?)))
        };
        text.lines().map(pair).collect::<Option<_>>().context("the receiver returned no times")
    }
}

impl Receiver {
    /// Nanoseconds between each refusal and its repeat.
    pub(crate) fn repeats(&mut self) -> Result<Vec<u64>> {
        // The connection may have been idle for too long.
        self.http = Http::connect(&format!("http://127.0.0.1:{}/", self.port))?;
        let text = String::from_utf8(self.http.get_ok("/repeats")?)?;
        text.lines().map(|line| Ok(line.parse()?)).collect()
    }

    /// Waits until so many repeats came.
    pub(crate) fn wait_repeats(&mut self, count: usize) -> Result<()> {
        wait_until("repeating", Duration::from_secs(120), || Ok(self.repeats()?.len() >= count))
    }
}

#[derive(Default)]
struct Received {
    times: Vec<(u64, u64)>,
    /// Refused deliveries, by path and number.
    refused: HashMap<(Vec<u8>, u64), u64>,
    repeats: Vec<u64>,
}

type Times = Rc<RefCell<Received>>;

/// Receives until it is killed; prints its port first.
pub(crate) fn receive() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let times = Times::default();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        // All of 127/8, as if each address were another machine; nobody from elsewhere.
        let listener = TcpListener::bind("0.0.0.0:0").await?;
        println!("{}", listener.local_addr()?.port());
        std::io::stdout().flush()?;
        loop {
            let (stream, from) = listener.accept().await?;
            if !from.ip().is_loopback() {
                continue;
            }
            tokio::task::spawn_local(converse(stream, Rc::clone(&times)));
        }
    })
}

/// The behaviour requested by a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeliveryMode {
    Take,
    TakeUncounted,
    Close,
    Hang,
    FailOnce,
    Other,
}

struct Head {
    length: usize,
    body: usize,
    way: DeliveryMode,
    offset: u64,
}

async fn converse(mut stream: TcpStream, times: Times) -> Option<()> {
    let _ = stream.set_nodelay(true);
    let (mut buffer, mut filled) = (vec![0; 64 << 10], 0);
    loop {
        let head = loop {
            if let Some(length) = end_of_head(&buffer[..filled]) {
                break read_head(&buffer[..length], length);
            }
            filled += read(&mut stream, buffer.get_mut(filled..)?).await?;
        };
        let asked = (head.way == DeliveryMode::Other)
            .then(|| String::from_utf8_lossy(&buffer[..head.length]).into_owned());
        let end = head.length + head.body;
        while filled < end {
            // A larger body than a bench sends breaks the connection off.
            filled += read(&mut stream, buffer.get_mut(filled..)?).await?;
        }
        let path = (head.way == DeliveryMode::FailOnce).then(|| {
            let line = buffer[..head.length].split(|byte| *byte == b'\n').next();
            line.unwrap_or_default().to_vec()
        });
        buffer.copy_within(end..filled, 0);
        filled -= end;
        let text;
        let answer: &[u8] = match head.way {
            DeliveryMode::Hang => std::future::pending().await,
            DeliveryMode::Other => {
                text = render_times(&asked?, &times);
                &text
            }
            DeliveryMode::Close => b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
            DeliveryMode::FailOnce => {
                let mut came = times.borrow_mut();
                let key = (path.unwrap_or_default(), head.offset);
                if let Some(refused) = came.refused.remove(&key) {
                    came.repeats.push(now() - refused);
                    b"HTTP/1.1 204 No Content\r\n\r\n"
                } else {
                    came.refused.insert(key, now());
                    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
                }
            }
            DeliveryMode::Take | DeliveryMode::TakeUncounted => b"HTTP/1.1 204 No Content\r\n\r\n",
        };
        if matches!(head.way, DeliveryMode::Take | DeliveryMode::Close) {
            times.borrow_mut().times.push((head.offset, now()));
        }
        stream.write_all(answer).await.ok()?;
        if head.way == DeliveryMode::Close {
            let _ = stream.shutdown().await;
            return None;
        }
    }
}

async fn read(stream: &mut TcpStream, into: &mut [u8]) -> Option<usize> {
    stream.read(into).await.ok().filter(|read| *read > 0)
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

fn read_head(bytes: &[u8], length: usize) -> Head {
    let way = match bytes {
        [b'P', b'O', b'S', b'T', b' ', b'/', way, b'/', ..] => match way {
            b'u' => DeliveryMode::TakeUncounted,
            b'c' => DeliveryMode::Close,
            b'h' => DeliveryMode::Hang,
            b'f' => DeliveryMode::FailOnce,
            _ => DeliveryMode::Take,
        },
        _ => DeliveryMode::Other,
    };
    let number = |line: &[u8], name: &str| -> Option<u64> {
        let (found, value) = line.split_at_checked(name.len())?;
        let value = std::str::from_utf8(value).ok()?;
        if found.eq_ignore_ascii_case(name.as_bytes()) { value.trim().parse().ok() } else { None }
    };
    let (mut body, mut offset) = (0, 0);
    for line in bytes.split(|byte| *byte == b'\n') {
        body = number(line, "content-length:").map_or(body, |length| length as usize);
        offset = number(line, "abreast-offset:").unwrap_or(offset);
    }
    Head { length, body, way, offset }
}

/// Answers to the bench.
fn render_times(request: &str, times: &Times) -> Vec<u8> {
    let mut body = String::new();
    match request.split(' ').nth(1) {
        Some("/reset") => *times.borrow_mut() = Received::default(),
        Some("/count") => {
            let _ = writeln!(body, "{}", times.borrow().times.len());
        }
        Some("/times") => {
            for (offset, time) in &times.borrow().times {
                let _ = writeln!(body, "{offset} {time}");
            }
        }
        Some("/repeats") => {
            for nanos in &times.borrow().repeats {
                let _ = writeln!(body, "{nanos}");
            }
        }
        _ => {}
    }
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
