//! Small HTTP servers on 127.0.0.1 that answer with the bytes that a test wants.

use crate::PATIENCE;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// Request line and headers, with the empty line after them.
    pub head: String,
    /// The bytes that `Content-Length` announced.
    pub body: Vec<u8>,
    /// Number of its connection, from 0.
    pub connection: usize,
    /// When it was complete.
    pub at: Instant,
    stop: Arc<AtomicBool>,
}

impl Request {
    /// Reads the next request of a connection; `None` when it ends before the request is complete,
    /// or begins with something that is not HTTP, such as a TLS handshake.
    pub fn read(input: &mut impl BufRead) -> Option<Self> {
        input.fill_buf().ok()?.first().filter(|byte| byte.is_ascii_uppercase())?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if input.read_until(b'\n', &mut head).ok()? == 0 {
                return None;
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut request = Self {
            head,
            body: Vec::new(),
            connection: 0,
            at: Instant::now(),
            stop: Arc::default(),
        };
        let length =
            request.header("content-length").map_or(Some(0), |length| length.parse().ok())?;
        request.body.resize(length, 0);
        input.read_exact(&mut request.body).ok()?;
        request.at = Instant::now();
        Some(request)
    }

    /// The request line.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.line().split(' ').next().unwrap_or_default()
    }

    /// What is asked for, as sent: path and query.
    pub fn target(&self) -> &str {
        self.line().split(' ').nth(1).unwrap_or_default()
    }

    /// The path, without the query.
    pub fn path(&self) -> &str {
        self.target().split('?').next().unwrap_or_default()
    }

    /// Names and values of the headers.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name, value.trim()))
    }

    /// The value of the first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Holds the connection without an answer until the client leaves or the server is dropped.
    pub fn hold(&self, stream: &mut TcpStream) {
        while !self.stop.load(SeqCst) && !client_left(stream, Duration::from_millis(50)) {}
    }
}

/// A server on a port of its own, with a thread for each connection. No connection is accepted
/// after it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: Arc<AtomicBool>,
    connections: AtomicUsize,
    open: AtomicUsize,
    seen: Mutex<Vec<Request>>,
    changed: Condvar,
}

/// A connection that is being served.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, SeqCst);
    }
}

impl Server {
    /// Hands over each connection as it is.
    pub fn raw(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::accepting(Arc::default(), move |_, stream| serve(stream))
    }

    /// Calls `answer` for each request; the connection is kept while that returns true.
    pub fn new(answer: impl Fn(&Request, &mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        Self::accepting(shared, move |connection, stream| {
            let mut input = BufReader::new(stream);
            while let Some(mut request) = Request::read(&mut input) {
                request.connection = connection;
                request.stop = Arc::clone(&own.stop);
                own.seen.lock().unwrap().push(request.clone());
                own.changed.notify_all();
                if !answer(&request, input.get_mut()) {
                    return;
                }
            }
        })
    }

    fn accepting(
        shared: Arc<Shared>,
        serve: impl Fn(usize, TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (own, serve) = (Arc::clone(&shared), Arc::new(serve));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if own.stop.load(SeqCst) {
                    return;
                }
                let connection = own.connections.fetch_add(1, SeqCst);
                let _ = stream.set_nodelay(true);
                own.open.fetch_add(1, SeqCst);
                let (own, serve) = (Arc::clone(&own), Arc::clone(&serve));
                std::thread::spawn(move || {
                    let _open = Open(own);
                    serve(connection, stream);
                });
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    /// Answers every request with the same bytes, and closes the connection.
    pub fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |_, stream| {
            let _ = stream.write_all(&answer);
            false
        })
    }

    /// Answers the first request with the first answer and so on, further ones with the last; keeps
    /// connections.
    pub fn script(answers: &[&str]) -> Self {
        let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
        let next = AtomicUsize::new(0);
        Self::new(move |_, stream| {
            let turn = next.fetch_add(1, SeqCst).min(answers.len() - 1);
            stream.write_all(answers[turn].as_bytes()).is_ok()
        })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Request> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// How many accepted connections are being served.
    pub fn open(&self) -> usize {
        self.shared.open.load(SeqCst)
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(SeqCst)
    }

    /// Waits until the requests so far are enough.
    ///
    /// # Panics
    /// After [`PATIENCE`].
    pub fn wait(&self, what: &str, enough: impl Fn(&[Request]) -> bool) -> Vec<Request> {
        let seen = self.shared.seen.lock().unwrap();
        let (seen, waited) =
            self.shared.changed.wait_timeout_while(seen, PATIENCE, |seen| !enough(seen)).unwrap();
        assert!(!waited.timed_out(), "waited in vain for {what}; requests: {seen:?}");
        seen.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        let is_woken = TcpStream::connect(self.address).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| is_woken) {
            let _ = thread.join();
        }
    }
}

/// An address where nothing listens: its port was free a moment ago. Each is returned once, and is below the ports that
/// systems choose for other sockets (from 16,000 on some), so that no test that runs at the same time takes it.
pub fn unused_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(101);
    let listener = std::iter::repeat_with(|| NEXT.fetch_add(1, SeqCst)).find_map(|next| {
        let port = 10_100 + begin.wrapping_add(next) % 5_900;
        TcpListener::bind(("127.0.0.1", u16::try_from(port).unwrap())).ok()
    });
    listener.unwrap().local_addr().unwrap()
}

/// A complete answer with status 200.
pub fn ok(body: &str) -> String {
    answer("200 OK", "", body)
}

/// A complete answer; each line of `headers` ends with CRLF.
pub fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// A redirect with a short body.
pub fn redirect(status: &str, location: &str) -> String {
    answer(status, &format!("Location: {location}\r\n"), "see there")
}

/// Sends a complete answer whose body may be any bytes; returns whether the connection is still
/// good.
pub fn send(stream: &mut impl Write, status: &str, headers: &str, body: &[u8]) -> bool {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).is_ok()
}

/// Reads a request up to its body, and not a byte more. Bytes of TLS are not a request.
pub fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) if !head.is_empty() || byte[0] != 0x16 => head.push(byte[0]),
            _ => return None,
        }
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Whether the client closes or sends something within that time; paces slow answers too.
pub fn client_left(stream: &mut TcpStream, within: Duration) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    stream.set_read_timeout(Some(within)).unwrap();
    !matches!(stream.read(&mut [0; 64]), Err(error) if matches!(error.kind(), WouldBlock | TimedOut))
}

/// Sends a byte now and then until the client leaves.
pub fn trickle(stream: &mut TcpStream, byte: u8) {
    while stream.write_all(&[byte]).is_ok() && !client_left(stream, Duration::from_millis(5)) {}
}

/// Holds the connection without an answer until the client leaves.
pub fn hold(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    while matches!(stream.read(&mut [0; 1024]), Ok(length) if length > 0) {}
}
