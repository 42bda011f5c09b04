//! A small HTTP server that does what a test says: subscribers, topics and other hubs.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Longest wait for anything: far more than is ever needed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) method: String,
    /// Path and query as sent.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    /// Parameters of the query, decoded.
    pub(crate) fn query(&self) -> HashMap<String, String> {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        query.split('&').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (decode(k), decode(v))).collect()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn is_delivery(&self) -> bool {
        self.method == "POST"
    }

    pub(crate) fn offset(&self) -> u64 {
        self.header("abreast-offset").unwrap().parse().unwrap()
    }
}

pub(crate) fn decode(text: &str) -> String {
    let (mut out, bytes) = (Vec::new(), text.as_bytes());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                out.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap());
                at += 2;
            }
            b'+' => out.push(b' '),
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8(out).unwrap()
}

pub(crate) fn encode(text: &str) -> String {
    text.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

/// What is answered.
#[derive(Clone)]
pub(crate) enum Reply {
    Status(u16),
    Full(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Nothing, until the other side goes away or the test ends.
    Hang,
    /// Bytes as they are; then the connection is closed.
    Raw(Vec<u8>),
    /// 200 and a body without end.
    Endless,
}

type Answer = dyn Fn(&Got) -> Reply + Send + Sync;

pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<(Mutex<Vec<Got>>, Condvar)>,
    stop: Arc<AtomicBool>,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn new(answer: impl Fn(&Got) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let (stop, connections) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let answer: Arc<Answer> = Arc::new(answer);
        let server = Self { address, seen: seen.clone(), stop: stop.clone(), connections: connections.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(SeqCst) {
                    return;
                }
                connections.fetch_add(1, SeqCst);
                let (answer, seen, stop) = (answer.clone(), seen.clone(), stop.clone());
                std::thread::spawn(move || {
                    let _ = serve(stream, &*answer, &seen, &stop);
                });
            }
        });
        server
    }

    /// Confirms whatever it is asked and takes whatever it is sent.
    pub(crate) fn willing() -> Self {
        Self::confirming(|_| Reply::Status(204))
    }

    /// Confirms whatever it is asked; deliveries are answered as told.
    pub(crate) fn confirming(answer: impl Fn(&Got) -> Reply + Send + Sync + 'static) -> Self {
        Self::new(move |got| if got.is_delivery() { answer(got) } else { confirm(got) })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Got> {
        self.seen.0.lock().unwrap().clone()
    }

    pub(crate) fn deliveries(&self) -> Vec<Got> {
        self.seen().into_iter().filter(Got::is_delivery).collect()
    }

    pub(crate) fn questions(&self) -> Vec<Got> {
        self.seen().into_iter().filter(|got| !got.is_delivery()).collect()
    }

    /// Waits until what came satisfies.
    pub(crate) fn wait(&self, what: &str, enough: impl Fn(&[Got]) -> bool) -> Vec<Got> {
        let (seen, changed) = &*self.seen;
        let end = Instant::now() + PATIENCE;
        let mut seen = seen.lock().unwrap();
        while !enough(&seen) {
            let left = end.checked_duration_since(Instant::now());
            let left = left.unwrap_or_else(|| panic!("waited in vain for {what}; got {seen:?}"));
            seen = changed.wait_timeout(seen, left).unwrap().0;
        }
        seen.clone()
    }

    pub(crate) fn wait_deliveries(&self, count: usize) -> Vec<Got> {
        let seen = self
            .wait(&format!("{count} deliveries"), |seen| seen.iter().filter(|got| got.is_delivery()).count() >= count);
        seen.into_iter().filter(Got::is_delivery).collect()
    }

    pub(crate) fn wait_questions(&self, count: usize) -> Vec<Got> {
        let seen = self
            .wait(&format!("{count} questions"), |seen| seen.iter().filter(|got| !got.is_delivery()).count() >= count);
        seen.into_iter().filter(|got| !got.is_delivery()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// The challenge as the answer.
pub(crate) fn confirm(got: &Got) -> Reply {
    let challenge = got.query().get("hub.challenge").cloned().unwrap_or_default();
    Reply::Full(200, vec![("Content-Type", "application/octet-stream".to_owned())], challenge.into_bytes())
}

fn serve(
    stream: TcpStream,
    answer: &Answer,
    seen: &(Mutex<Vec<Got>>, Condvar),
    stop: &AtomicBool,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
                None => break,
            }
        }
        let mut got = Got { method, target, headers, body: Vec::new() };
        let length = got.header("content-length").map_or(0, |length| length.parse().unwrap());
        got.body.resize(length, 0);
        reader.read_exact(&mut got.body)?;
        let reply = answer(&got);
        seen.0.lock().unwrap().push(got);
        seen.1.notify_all();
        match reply {
            Reply::Status(status) => write!(out, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")?,
            Reply::Full(status, headers, body) => {
                let mut head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len());
                for (name, value) in headers {
                    head = head + name + ": " + &value + "\r\n";
                }
                out.write_all(&[head.as_bytes(), b"\r\n", &body].concat())?;
            }
            Reply::Raw(bytes) => return out.write_all(&bytes),
            Reply::Endless => {
                out.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
                loop {
                    out.write_all(&[b'x'; 8_192])?;
                }
            }
            Reply::Hang => {
                out.set_read_timeout(Some(Duration::from_millis(50)))?;
                let mut byte = [0];
                while !stop.load(SeqCst) {
                    match reader.read(&mut byte) {
                        Ok(0) => return Ok(()),
                        Err(e)
                            if !matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
                        {
                            return Ok(());
                        }
                        _ => {}
                    }
                }
                return Ok(());
            }
        }
    }
}
