//! A server that answers requests with whatever bytes a test wants.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// One request as it came in.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    /// Number of the connection, from 0.
    pub(crate) connection: usize,
    pub(crate) at: Instant,
}

impl Seen {
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn path(&self) -> &str {
        self.line().split(' ').nth(1).unwrap_or_default()
    }
}

pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Calls `answer` for each request; the connection is kept while it returns true.
    pub(crate) fn new(answer: impl Fn(&Seen, &mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let recorded = seen.clone();
        let connections = AtomicUsize::new(0);
        let mut server = Self::raw(move |mut stream| {
            let connection = connections.fetch_add(1, SeqCst);
            while let Some(head) = read_head(&mut stream) {
                let request = Seen { head, connection, at: Instant::now() };
                recorded.lock().unwrap().push(request.clone());
                if !answer(&request, &mut stream) {
                    return;
                }
            }
        });
        server.seen = seen;
        server
    }

    /// Hands over each connection as it is.
    pub(crate) fn raw(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let serve = Arc::new(serve);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(SeqCst) {
                    return;
                }
                stream.set_nodelay(true).unwrap();
                let serve = serve.clone();
                thread::spawn(move || serve(stream));
            }
        });
        Self { address, seen: Arc::default(), stop }
    }

    /// Says the same to every request and closes.
    pub(crate) fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |_, stream| {
            let _ = stream.write_all(&answer);
            false
        })
    }

    /// Says the first answer to the first request and so on, the last one to all further ones; keeps connections.
    pub(crate) fn script(answers: &[&str]) -> Self {
        let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
        let next = AtomicUsize::new(0);
        Self::new(move |_, stream| {
            let turn = next.fetch_add(1, SeqCst).min(answers.len() - 1);
            stream.write_all(answers[turn].as_bytes()).is_ok()
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen().iter().map(|seen| seen.connection + 1).max().unwrap_or(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// A complete answer.
pub(crate) fn ok(body: &str) -> String {
    answer("200 OK", "", body)
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

pub(crate) fn redirect(status: &str, location: &str) -> String {
    answer(status, &format!("Location: {location}\r\n"), "see there")
}

/// Whether the client closes or sends something within that time; paces slow answers too.
pub(crate) fn client_left(stream: &mut TcpStream, within: Duration) -> bool {
    stream.set_read_timeout(Some(within)).unwrap();
    !matches!(stream.read(&mut [0; 64]), Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut))
}

/// Sends a byte now and then until the client leaves.
pub(crate) fn trickle(stream: &mut TcpStream, byte: u8) {
    while stream.write_all(&[byte]).is_ok() && !client_left(stream, Duration::from_millis(5)) {}
}

/// Holds the connection without a word until the client leaves.
pub(crate) fn hold(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    while matches!(stream.read(&mut [0; 1024]), Ok(n) if n > 0) {}
}

pub(crate) fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    Some(String::from_utf8(head).unwrap())
}
