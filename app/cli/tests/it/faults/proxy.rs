//! A proxy that breaks requests and answers. The same seed breaks the same attempts at the same paths.
//!
//! Each request has its own draw, from the seed, its path and how often that path was asked for, so
//! that it does not matter in which order connections come. A Source published at the proxy's
//! address is behind it as a whole.

use abreast_testkit::Random;
use abreast_testkit::digest::md5_hex;
use abreast_testkit::http::Server;
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Of a hundred requests so many meet each fault, unless a test chooses another number.
const SHARE: u64 = 3;
const FAULTS: [Fault; 11] = [
    Fault::Refuse,
    Fault::Reset,
    Fault::Cut,
    Fault::Stall,
    Fault::Drip,
    Fault::Flip,
    Fault::Duplicate,
    Fault::HalfClose,
    Fault::LostAck,
    Fault::Delay,
    Fault::Unavailable,
];

/// How long a stalled answer stays open: longer than those who wait for it do.
pub(crate) const STALL: Duration = Duration::from_millis(2_500);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    None,
    /// The connection is reset before an answer.
    Refuse,
    /// Reset after the first byte of the answer.
    Reset,
    /// Closed after 1 to 4,096 bytes of the answer, or all but one.
    Cut,
    /// Nothing more after 100 bytes, while the connection stays open.
    Stall,
    /// 200 bytes come one by one.
    Drip,
    /// One bit of the body turns over.
    Flip,
    /// The request arrives twice.
    Duplicate,
    /// Half of the request arrives, then both sides are closed.
    HalfClose,
    /// The request arrives, its answer is lost.
    LostAck,
    /// 300 ms late.
    Delay,
    /// An answer with 500, 502, 503 or 504; the request does not arrive.
    Unavailable,
}

struct Inner {
    target: Mutex<String>,
    /// `None` breaks nothing.
    seed: Mutex<Option<u64>>,
    /// Of a hundred requests so many meet each fault.
    share: u64,
    asked: Mutex<BTreeMap<String, u64>>,
    met: Mutex<BTreeMap<Fault, u64>>,
    accepted: AtomicU64,
}

pub(crate) struct FaultProxy {
    inner: Arc<Inner>,
    server: Server,
}

impl FaultProxy {
    pub(crate) fn start() -> Self {
        Self::with_share(SHARE)
    }

    /// Of a hundred requests so many meet each fault.
    pub(crate) fn with_share(share: u64) -> Self {
        let inner = Arc::new(Inner {
            target: Mutex::default(),
            seed: Mutex::default(),
            share,
            asked: Mutex::default(),
            met: Mutex::default(),
            accepted: AtomicU64::new(0),
        });
        let own = Arc::clone(&inner);
        let server = Server::raw(move |stream| while carry(&own, &stream).unwrap_or(false) {});
        Self { inner, server }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/")
    }

    /// Where requests go.
    pub(crate) fn target(&self, address: &str) {
        address.clone_into(&mut self.inner.target.lock().unwrap());
    }

    /// From now on faults are drawn from this seed, or there are none.
    pub(crate) fn seed(&self, seed: Option<u64>) {
        self.inner.asked.lock().unwrap().clear();
        self.inner.met.lock().unwrap().clear();
        *self.inner.seed.lock().unwrap() = seed;
    }

    /// How often each fault was met since the seed was set.
    pub(crate) fn met(&self) -> BTreeMap<Fault, u64> {
        self.inner.met.lock().unwrap().clone()
    }

    /// How many requests of POST were answered with 2xx.
    #[cfg(feature = "xmpp")]
    pub(crate) fn accepted(&self) -> u64 {
        self.inner.accepted.load(Ordering::Relaxed)
    }
}

fn draw(inner: &Inner, path: &str) -> (Fault, Random) {
    let Some(seed) = *inner.seed.lock().unwrap() else { return (Fault::None, Random::new(0)) };
    let count = {
        let mut asked = inner.asked.lock().unwrap();
        let count = asked.entry(path.to_owned()).or_default();
        *count += 1;
        *count
    };
    let digest = md5_hex(format!("{seed} {path} {count}").as_bytes());
    let mut random = Random::new(u64::from_str_radix(&digest[..15], 16).unwrap());
    let mut found =
        FAULTS.get((random.below(100) / inner.share) as usize).copied().unwrap_or(Fault::None);
    // Only resources and packages have listed digests; a flipped bit in a list cannot be detected.
    if found == Fault::Flip && !path.contains("/r/") && !path.contains("/dump/") {
        found = Fault::Cut;
    }
    *inner.met.lock().unwrap().entry(found).or_default() += 1;
    (found, random)
}

/// The end of the head in what begins here.
fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// The value of a header in a head.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}

/// Passes so many bytes of an answer without an end, until one of both sides leaves.
fn pass(upstream: &mut TcpStream, mut client: &TcpStream, mut most: u64) -> io::Result<()> {
    upstream.set_read_timeout(Some(Duration::from_millis(100)))?;
    client.set_read_timeout(Some(Duration::from_millis(1)))?;
    let waits = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
    };
    let mut piece = [0; 4_096];
    while most > 0 {
        match upstream.read(&mut piece[..most.min(4_096) as usize]) {
            Ok(0) => break,
            Ok(length) => {
                client.write_all(&piece[..length])?;
                most -= length as u64;
            }
            Err(error) if waits(&error) => {}
            Err(error) => return Err(error),
        }
        if matches!(client.peek(&mut [0]), Ok(0)) {
            break;
        }
    }
    Ok(())
}

/// Carries one exchange. Returns whether the connection is good for another.
fn carry(inner: &Inner, client: &TcpStream) -> io::Result<bool> {
    let mut seen = vec![0; 16_384];
    let end = loop {
        let length = client.peek(&mut seen)?;
        // Also for data that is not HTTP, such as a TLS handshake.
        if length == 0 || !seen[0].is_ascii_uppercase() {
            return Ok(false);
        }
        if let Some(end) = head_end(&seen[..length]) {
            break end;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let head = String::from_utf8_lossy(&seen[..end]).into_owned();
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    let (fault, mut random) = draw(inner, &path);
    if fault == Fault::Refuse {
        // What is dropped while bytes wait to be read is reset.
        return Ok(false);
    }
    let mut client_in = client;
    let mut client_out = client;
    client_in.read_exact(&mut seen[..end - 1])?;
    if fault != Fault::Reset {
        client_in.read_exact(&mut [0])?;
    }
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    let mut request = head.replacen("\r\n", "\r\nConnection: close\r\n", 1).into_bytes();
    if fault != Fault::Reset {
        client_in.take(length.unwrap_or(0)).read_to_end(&mut request)?;
    }
    if fault == Fault::Unavailable {
        let status = [500, 502, 503, 504][random.below(4) as usize];
        write!(client_out, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")?;
        return Ok(true);
    }
    let target = inner.target.lock().unwrap().clone();
    let send = |bytes: &[u8]| -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&target)?;
        stream.write_all(bytes)?;
        Ok(stream)
    };
    if fault == Fault::HalfClose {
        send(&request[..request.len() / 2])?;
        return Ok(false);
    }
    if fault == Fault::Reset && length.is_some() {
        // Its body was not read.
        client_out.write_all(b"H")?;
        return Ok(false);
    }
    let mut upstream = send(&request)?;
    if header(&head, "accept") == Some("text/event-stream") {
        let most = if fault == Fault::None { u64::MAX } else { random.below(4_096) };
        return pass(&mut upstream, client, most).map(|()| false);
    }
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer)?;
    let Some(split) = head_end(&answer) else { return Ok(false) };
    let printed: String = String::from_utf8_lossy(&answer[..split])
        .split_inclusive("\r\n")
        .filter(|line| !line.to_ascii_lowercase().starts_with("connection:"))
        .collect();
    if head.starts_with("POST ") && printed.starts_with("HTTP/1.1 2") {
        inner.accepted.fetch_add(1, Ordering::Relaxed);
    }
    let body = split..answer.len();
    let mut reply = printed.into_bytes();
    let begin = reply.len();
    reply.extend_from_slice(&answer[body]);
    match fault {
        Fault::Reset => {
            client_out.write_all(&reply[..1])?;
            return Ok(false);
        }
        Fault::Cut => {
            let length = (1 + random.below(4_096) as usize).min(reply.len() - 1);
            client_out.write_all(&reply[..length])?;
            return Ok(false);
        }
        Fault::Stall => {
            client_out.write_all(&reply[..100.min(reply.len() - 1)])?;
            std::thread::sleep(STALL);
            return Ok(false);
        }
        Fault::LostAck => return Ok(false),
        Fault::Flip if reply.len() > begin => {
            let at = begin + random.below((reply.len() - begin) as u64) as usize;
            reply[at] ^= 1 << random.below(8);
        }
        Fault::Duplicate => drop(send(&request)?.read_to_end(&mut Vec::new())?),
        Fault::Delay => std::thread::sleep(Duration::from_millis(300)),
        Fault::Drip => {
            for byte in reply.drain(..200.min(reply.len())) {
                client_out.write_all(&[byte])?;
                std::thread::sleep(Duration::from_micros(300));
            }
        }
        _ => {}
    }
    client_out.write_all(&reply)?;
    Ok(true)
}
