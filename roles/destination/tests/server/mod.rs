//! A small HTTP server whose answers a test writes, on 127.0.0.1.
#![allow(dead_code, clippy::unwrap_used, reason = "a test's tool")]

pub(crate) mod zip;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One answer. Without `raw`, status, headers and body are put together, and conditional requests are answered.
#[derive(Clone, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Sent as it is, then the connection is closed.
    pub(crate) raw: Option<Vec<u8>>,
    /// `raw` is the begin of a stream: the connection stays, for [`Server::say`].
    pub(crate) stays: bool,
}

impl Answer {
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, body: body.into(), ..Self::default() }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// Without the last so many bytes, although announced.
    pub(crate) fn cut(body: impl Into<Vec<u8>>, short: usize) -> Self {
        let body = body.into();
        let mut raw = format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        raw.extend_from_slice(&body[..body.len() - short]);
        Self::raw(raw)
    }

    pub(crate) fn raw(text: impl Into<Vec<u8>>) -> Self {
        Self { raw: Some(text.into()), ..Self::default() }
    }

    /// An event stream, which stays open.
    pub(crate) fn events() -> Self {
        let raw = b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n".to_vec();
        Self { stays: true, ..Self::raw(raw) }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

type Handler = Box<dyn Fn(&str, usize) -> Option<Answer> + Send + Sync>;

#[derive(Default)]
struct Inner {
    pages: Mutex<HashMap<String, Answer>>,
    past_caches: Mutex<HashMap<String, Answer>>,
    log: Mutex<Vec<String>>,
    handler: Mutex<Option<Handler>>,
    /// Path and body of what was posted.
    posted: Mutex<Vec<(String, String)>>,
    /// Path, `Last-Event-ID` and connection of streams that stay open.
    streams: Mutex<Vec<(String, String, TcpStream)>>,
}

/// The server; its thread ends with the process.
#[derive(Clone)]
pub(crate) struct Server {
    inner: Arc<Inner>,
    pub(crate) base: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let inner = Arc::new(Inner::default());
        let server = Self { inner: inner.clone(), base };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let inner = inner.clone();
                std::thread::spawn(move || serve(&inner, stream));
            }
        });
        server
    }

    /// Sets what a path (with query) answers.
    pub(crate) fn put(&self, path: &str, answer: Answer) {
        self.inner.pages.lock().unwrap().insert(path.to_owned(), answer);
    }

    pub(crate) fn body(&self, path: &str, body: impl Into<Vec<u8>>) {
        self.put(path, Answer::ok(body));
    }

    /// Sets what a path answers to `Cache-Control: no-cache`; without that it answers as a cache would, with what was
    /// put there.
    pub(crate) fn past_caches(&self, path: &str, answer: Answer) {
        self.inner.past_caches.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// The body that a path answers.
    pub(crate) fn page(&self, path: &str) -> Vec<u8> {
        self.inner.pages.lock().unwrap().get(path).map(|answer| answer.body.clone()).unwrap_or_default()
    }

    pub(crate) fn remove(&self, path: &str) {
        self.inner.pages.lock().unwrap().remove(path);
    }

    /// Asked first for each request, with the request's number from 0.
    pub(crate) fn handler(&self, handler: impl Fn(&str, usize) -> Option<Answer> + Send + Sync + 'static) {
        *self.inner.handler.lock().unwrap() = Some(Box::new(handler));
    }

    /// The paths asked for since the last call.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.inner.log.lock().unwrap())
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Path and body of everything posted so far.
    pub(crate) fn posted(&self) -> Vec<(String, String)> {
        self.inner.posted.lock().unwrap().clone()
    }

    /// The `Last-Event-ID` of every stream that is open.
    pub(crate) fn streams(&self) -> Vec<String> {
        self.inner.streams.lock().unwrap().iter().map(|(_, id, _)| id.clone()).collect()
    }

    /// Sends more to the streams that are open.
    pub(crate) fn say(&self, bytes: &[u8]) {
        for (_, _, stream) in self.inner.streams.lock().unwrap().iter_mut() {
            let _ = stream.write_all(bytes);
        }
    }

    /// Ends the streams that are open.
    pub(crate) fn cut(&self) {
        for (_, _, stream) in self.inner.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn serve(inner: &Inner, stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let path = line.split(' ').nth(1).unwrap_or("/").to_owned();
        let mut conditions = HashMap::new();
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).unwrap_or(0) == 0 {
                return;
            }
            let header = header.trim_end();
            if header.is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':') {
                conditions.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            }
        }
        let length = conditions.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if line.starts_with("POST ") {
            let mut body = vec![0; length];
            if std::io::Read::read_exact(&mut reader, &mut body).is_err() {
                return;
            }
            inner.posted.lock().unwrap().push((path.clone(), String::from_utf8_lossy(&body).into_owned()));
        }
        let number = {
            let mut log = inner.log.lock().unwrap();
            log.push(if line.starts_with("HEAD ") { format!("HEAD {path}") } else { path.clone() });
            log.len() - 1
        };
        let made = inner.handler.lock().unwrap().as_ref().and_then(|handler| handler(&path, number));
        let fresh = conditions
            .get("cache-control")
            .filter(|value| *value == "no-cache")
            .and_then(|_| inner.past_caches.lock().unwrap().get(&path).cloned());
        let made = made.or(fresh);
        let answer = made.or_else(|| inner.pages.lock().unwrap().get(&path).cloned()).unwrap_or(Answer::status(404));
        if let Some(raw) = answer.raw {
            let _ = stream.write_all(&raw);
            if answer.stays {
                let id = conditions.remove("last-event-id").unwrap_or_default();
                inner.streams.lock().unwrap().push((path, id, stream));
            }
            return;
        }
        let etag = answer.headers.iter().find(|(name, _)| name == "etag").map(|(_, value)| value.clone());
        let etag = etag.unwrap_or_else(|| {
            use std::hash::{DefaultHasher, Hash as _, Hasher as _};
            let mut hasher = DefaultHasher::new();
            answer.body.hash(&mut hasher);
            format!("\"{:x}\"", hasher.finish())
        });
        let same = answer.status == 200 && conditions.get("if-none-match") == Some(&etag);
        let (mut status, mut body) = if same { (304, &b""[..]) } else { (answer.status, &answer.body[..]) };
        let mut range = String::new();
        if let Some(from) = conditions
            .get("range")
            .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok())
            && conditions.get("if-range") == Some(&etag)
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
        if !line.starts_with("HEAD ") {
            out.extend_from_slice(body);
        }
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

/// A document of one kind: `attributes` of its `rs:md`, and its entries as XML.
pub(crate) fn document(root: &str, attributes: &str, entries: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\n<rs:md {attributes}/>\n{entries}</{root}>\n"
    )
}

pub(crate) fn md5_hex(bytes: &[u8]) -> String {
    use md5::Digest as _;
    md5::Md5::digest(bytes).iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// A Source with a Capability List, a Resource List and an open Change List, kept as a test changes it.
pub(crate) struct Source {
    pub(crate) server: Server,
    pub(crate) kept: std::collections::BTreeMap<String, Vec<u8>>,
    pub(crate) changes: String,
    pub(crate) clock: u32,
    pub(crate) at: String,
}

pub(crate) const BEGIN: &str = "2026-01-01T00:00:00Z";

impl Source {
    pub(crate) fn new() -> Self {
        let server = Server::start();
        let caps = format!(
            "<url><loc>{0}/resourcelist.xml</loc><rs:md capability=\"resourcelist\"/></url>\n\
             <url><loc>{0}/changelist.xml</loc><rs:md capability=\"changelist\"/></url>\n",
            server.base
        );
        server.body("/caps.xml", document("urlset", "capability=\"capabilitylist\"", &caps));
        let source = Self {
            server,
            kept: std::collections::BTreeMap::new(),
            changes: String::new(),
            clock: 0,
            at: BEGIN.to_owned(),
        };
        source.publish();
        source
    }

    pub(crate) fn now(&self) -> String {
        format!("2026-01-01T00:{:02}:{:02}Z", self.clock / 60, self.clock % 60)
    }

    /// A resource as an entry, with length and digest.
    pub(crate) fn entry(&self, path: &str, body: &[u8], change: &str) -> String {
        format!(
            "<url><loc>{}</loc><lastmod>2025-06-01T00:00:00Z</lastmod><rs:md hash=\"md5:{}\" length=\"{}\"{change}/></url>\n",
            self.server.url(path),
            md5_hex(body),
            body.len()
        )
    }

    fn log(&mut self, entry: &str) {
        self.clock += 1;
        let stamp = format!("datetime=\"{}\"", self.now());
        self.changes.push_str(&entry.replace("datetime=\"\"", &stamp));
    }

    /// Creates or updates a resource, with a change.
    pub(crate) fn set(&mut self, path: &str, body: &str) {
        let change = if self.kept.contains_key(path) { "updated" } else { "created" };
        self.kept.insert(path.to_owned(), body.as_bytes().to_vec());
        self.server.body(path, body);
        let entry = self.entry(path, body.as_bytes(), &format!(" change=\"{change}\" datetime=\"\""));
        self.log(&entry);
        self.publish();
    }

    pub(crate) fn delete(&mut self, path: &str) {
        self.kept.remove(path);
        self.server.remove(path);
        let entry =
            format!("<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"\"/></url>\n", self.server.url(path));
        self.log(&entry);
        self.publish();
    }

    /// Publishes both lists. The Resource List stays at its instant: only `snapshot` moves it.
    pub(crate) fn publish(&self) {
        let changes = document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), &self.changes);
        self.server.body("/changelist.xml", changes);
        if !self.server.inner.pages.lock().unwrap().contains_key("/resourcelist.xml") {
            self.server.body(
                "/resourcelist.xml",
                document("urlset", &format!("capability=\"resourcelist\" at=\"{BEGIN}\""), ""),
            );
        }
    }

    /// Publishes the Resource List as of now.
    pub(crate) fn snapshot(&mut self) {
        self.at = self.now();
        let entries: String = self.kept.iter().map(|(path, body)| self.entry(path, body, "")).collect();
        let attributes = format!("capability=\"resourcelist\" at=\"{}\"", self.at);
        self.server.body("/resourcelist.xml", document("urlset", &attributes, &entries));
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/caps.xml")
    }
}
