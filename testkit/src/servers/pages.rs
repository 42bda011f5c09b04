//! A web server whose pages a test writes: conditional requests, ranges, broken answers, event
//! streams.

use crate::servers::http::{self, Request};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One answer. Without `raw`, status, headers and body are put together, and conditional requests
/// are answered.
#[derive(Clone, Default)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names and values; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
    /// Sent as it is, then the connection is closed.
    pub raw: Option<Vec<u8>>,
    /// `raw` is the begin of a stream: the connection stays, for [`Server::send`].
    pub stays: bool,
}

impl Answer {
    /// A body with status 200.
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, body: body.into(), ..Self::default() }
    }

    /// A status and no body.
    pub fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// A body without its last bytes, although `Content-Length` counts them.
    pub fn cut(body: impl Into<Vec<u8>>, short: usize) -> Self {
        let body = body.into();
        let mut raw =
            format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        raw.extend_from_slice(&body[..body.len() - short]);
        Self::raw(raw)
    }

    /// Bytes that are sent as they are.
    pub fn raw(text: impl Into<Vec<u8>>) -> Self {
        Self { raw: Some(text.into()), ..Self::default() }
    }

    /// An event stream, which stays open.
    pub fn events() -> Self {
        let raw = b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n".to_vec();
        Self { stays: true, ..Self::raw(raw) }
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

type Handler = Box<dyn Fn(&str, usize) -> Option<Answer> + Send + Sync>;

#[derive(Default)]
struct Inner {
    pages: Mutex<HashMap<String, Answer>>,
    past_caches: Mutex<HashMap<String, Answer>>,
    /// By path and `Accept`.
    by_accept: Mutex<HashMap<(String, String), Answer>>,
    log: Mutex<Vec<String>>,
    handler: Mutex<Option<Handler>>,
    /// What requests with HEAD are answered instead.
    of_head: Mutex<Option<u16>>,
    /// How long each answer takes.
    delay: Mutex<Duration>,
    /// Path and body of what was posted.
    posted: Mutex<Vec<(String, String)>>,
    /// Path, `Last-Event-ID` and connection of streams that stay open.
    streams: Mutex<Vec<(String, String, TcpStream)>>,
}

/// The server; it ends with its last clone.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
    http: Arc<http::Server>,
    /// What the URLs of its pages begin with: `http://` and the address, unless a test sets another.
    pub base: String,
}

impl Server {
    /// A server without pages.
    pub fn start() -> Self {
        let inner = Arc::<Inner>::default();
        let own = Arc::clone(&inner);
        let http = http::Server::new(move |request, stream| answer(&own, request, stream));
        Self { inner, base: http.url(""), http: Arc::new(http) }
    }

    /// Its address, whatever its documents name.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Sets what a path (with query) answers.
    pub fn put(&self, path: &str, answer: Answer) {
        self.inner.pages.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// Sets the body that a path answers.
    pub fn body(&self, path: &str, body: impl Into<Vec<u8>>) {
        self.put(path, Answer::ok(body));
    }

    /// Sets what a path answers to `Cache-Control: no-cache`; without that it answers as a cache
    /// would, with what was put there.
    pub fn past_caches(&self, path: &str, answer: Answer) {
        self.inner.past_caches.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// Sets what a path answers to a request with that `Accept`.
    pub fn by_accept(&self, path: &str, accept: &str, answer: Answer) {
        self.inner.by_accept.lock().unwrap().insert((path.to_owned(), accept.to_owned()), answer);
    }

    /// Whether something is at a path.
    pub fn has_page(&self, path: &str) -> bool {
        self.inner.pages.lock().unwrap().contains_key(path)
    }

    /// The body that a path answers.
    pub fn page(&self, path: &str) -> Vec<u8> {
        self.inner
            .pages
            .lock()
            .unwrap()
            .get(path)
            .map(|answer| answer.body.clone())
            .unwrap_or_default()
    }

    /// Lets a path answer with 404.
    pub fn remove(&self, path: &str) {
        self.inner.pages.lock().unwrap().remove(path);
    }

    /// Sets what is asked first for each request, with the request's number from 0.
    pub fn handler(&self, handler: impl Fn(&str, usize) -> Option<Answer> + Send + Sync + 'static) {
        *self.inner.handler.lock().unwrap() = Some(Box::new(handler));
    }

    /// Sets the status that each request with HEAD is answered with.
    pub fn head(&self, status: u16) {
        *self.inner.of_head.lock().unwrap() = Some(status);
    }

    /// Sets how long each answer takes at least.
    pub fn delay(&self, each: Duration) {
        *self.inner.delay.lock().unwrap() = each;
    }

    /// The paths asked for since the last call.
    pub fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.inner.log.lock().unwrap())
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Path and body of everything posted so far.
    pub fn posted(&self) -> Vec<(String, String)> {
        self.inner.posted.lock().unwrap().clone()
    }

    /// The `Last-Event-ID` of every stream that is open.
    pub fn streams(&self) -> Vec<String> {
        self.inner.streams.lock().unwrap().iter().map(|(_, id, _)| id.clone()).collect()
    }

    /// Sends more on the streams that are open.
    pub fn send(&self, bytes: &[u8]) {
        for (_, _, stream) in self.inner.streams.lock().unwrap().iter_mut() {
            let _ = stream.write_all(bytes);
        }
    }

    /// Ends the streams that are open.
    pub fn cut(&self) {
        for (_, _, stream) in self.inner.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Answers a request; returns whether the connection is kept.
fn answer(inner: &Inner, request: &Request, stream: &mut TcpStream) -> bool {
    let path = request.target();
    let is_head = request.method() == "HEAD";
    if request.method() == "POST" {
        inner.posted.lock().unwrap().push((path.to_owned(), request.text()));
    }
    let number = {
        let mut log = inner.log.lock().unwrap();
        log.push(if is_head { format!("HEAD {path}") } else { path.to_owned() });
        log.len() - 1
    };
    let delay = *inner.delay.lock().unwrap();
    std::thread::sleep(delay);
    let made = inner.handler.lock().unwrap().as_ref().and_then(|handler| handler(path, number));
    let fresh = request
        .header("cache-control")
        .filter(|value| *value == "no-cache")
        .and_then(|_| inner.past_caches.lock().unwrap().get(path).cloned());
    let accept = (path.to_owned(), request.header("accept").unwrap_or_default().to_owned());
    let accepted = inner.by_accept.lock().unwrap().get(&accept).cloned();
    let made = made.or(fresh).or(accepted);
    let of_head = inner.of_head.lock().unwrap().filter(|_| is_head).map(Answer::status);
    let answer = of_head
        .or(made)
        .or_else(|| inner.pages.lock().unwrap().get(path).cloned())
        .unwrap_or(Answer::status(404));
    if let Some(raw) = answer.raw {
        let _ = stream.write_all(&raw);
        if answer.stays {
            let id = request.header("last-event-id").unwrap_or_default().to_owned();
            inner.streams.lock().unwrap().push((path.to_owned(), id, stream.try_clone().unwrap()));
        }
        return false;
    }
    let etag =
        answer.headers.iter().find(|(name, _)| name == "etag").map(|(_, value)| value.clone());
    let etag = etag.unwrap_or_else(|| {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        answer.body.hash(&mut hasher);
        format!("\"{:x}\"", hasher.finish())
    });
    let same = answer.status == 200 && request.header("if-none-match") == Some(&etag);
    let (mut status, mut body) =
        if same { (304, &b""[..]) } else { (answer.status, &answer.body[..]) };
    let mut range = String::new();
    if let Some(from) = request
        .header("range")
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok())
        && request.header("if-range") == Some(&etag)
        && from < body.len()
    {
        range = format!("content-range: bytes {from}-{}/{}\r\n", body.len() - 1, body.len());
        (status, body) = (206, &body[from..]);
    }
    let mut head = format!("HTTP/1.1 {status} X\r\netag: {etag}\r\n");
    if !same {
        let _ = write!(head, "content-length: {}\r\n", body.len());
    }
    for (name, value) in answer.headers.iter().filter(|(name, _)| name != "etag") {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str(&range);
    head.push_str("\r\n");
    let mut out = head.into_bytes();
    if !is_head {
        out.extend_from_slice(body);
    }
    stream.write_all(&out).is_ok()
}
