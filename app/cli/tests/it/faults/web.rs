//! A web server with pages that a test defines. The server counts sent bytes, and can delay bodies.

use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{self, capability_list};
use abreast_testkit::http::{Request, Server};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};

#[derive(Clone, Default)]
pub(super) struct Page {
    status: u16,
    body: Arc<Vec<u8>>,
}

impl Page {
    pub(super) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, body: Arc::new(body.into()) }
    }

    pub(super) fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }
}

/// One request, and how much of its body was sent.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) path: String,
    pub(super) bytes: usize,
    pub(super) whole: bool,
}

/// Bodies that wait, beginning at a byte of one path, or at a request.
#[derive(Clone, Default)]
enum Hold {
    #[default]
    Nothing,
    Body(String, usize),
    Requests(String, usize),
}

#[derive(Default)]
struct Inner {
    pages: Mutex<HashMap<String, Page>>,
    log: Mutex<Vec<Sent>>,
    hold: Mutex<Hold>,
    opened: Condvar,
}

#[derive(Clone)]
pub(super) struct Web {
    inner: Arc<Inner>,
    server: Arc<Server>,
}

impl Web {
    pub(super) fn start() -> Self {
        let inner = Arc::<Inner>::default();
        let own = Arc::clone(&inner);
        let server = Server::new(move |request, stream| answer(&own, request, stream).is_some());
        Self { inner, server: Arc::new(server) }
    }

    pub(super) fn put(&self, path: &str, page: Page) {
        self.inner.pages.lock().unwrap().insert(path.to_owned(), page);
    }

    pub(super) fn body(&self, path: &str, body: impl Into<Vec<u8>>) {
        self.put(path, Page::ok(body));
    }

    pub(super) fn remove(&self, path: &str) {
        self.inner.pages.lock().unwrap().remove(path);
    }

    /// All bodies whose paths begin so.
    pub(super) fn bodies(&self, prefix: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let pages = self.inner.pages.lock().unwrap();
        let of = |(path, page): (&String, &Page)| {
            Some((path.strip_prefix(prefix)?.into(), page.body.to_vec()))
        };
        pages.iter().filter_map(of).collect()
    }

    pub(super) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// Sends the body of a path up to that byte, no further.
    pub(super) fn hold_body(&self, path: &str, byte: usize) {
        *self.inner.hold.lock().unwrap() = Hold::Body(path.to_owned(), byte);
    }

    /// Answers so many requests for paths with this beginning, no more.
    pub(super) fn hold_requests(&self, prefix: &str, count: usize) {
        *self.inner.hold.lock().unwrap() = Hold::Requests(prefix.to_owned(), count);
    }

    pub(super) fn let_go(&self) {
        *self.inner.hold.lock().unwrap() = Hold::Nothing;
        self.inner.opened.notify_all();
    }

    /// What was sent since the last call.
    pub(super) fn take_log(&self) -> Vec<Sent> {
        std::mem::take(&mut *self.inner.log.lock().unwrap())
    }

    pub(super) fn count(&self, prefix: &str) -> usize {
        self.inner.log.lock().unwrap().iter().filter(|sent| sent.path.starts_with(prefix)).count()
    }

    /// A resource as an entry with length and digest; `more` are further attributes.
    pub(super) fn entry(&self, path: &str, body: &[u8], more: &str) -> String {
        documents::entry(&self.url(path), body, more)
    }

    /// A Capability List that offers documents.
    pub(super) fn offer(&self, documents: &[(&str, &str)]) {
        let documents = documents.iter().map(|(capability, path)| (capability, self.url(path)));
        self.body("/caps.xml", capability_list(documents));
    }
}

/// Answers a request; `None` ends the connection.
fn answer(inner: &Inner, request: &Request, stream: &mut TcpStream) -> Option<()> {
    let path = request.target();
    let page = inner.pages.lock().unwrap().get(path).cloned().unwrap_or_else(|| Page::status(404));
    let etag = format!("\"{}\"", &md5_hex(page.body.as_slice())[..16]);
    let length = page.body.len();
    let begin = request
        .header("range")
        .filter(|_| page.status == 200 && request.header("if-range") == Some(&etag))
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok())
        .filter(|begin| *begin < length);
    let same = page.status == 200 && request.header("if-none-match") == Some(&etag);
    let (status, from) = match begin {
        _ if same => (304, length),
        Some(begin) => (206, begin),
        None => (page.status, 0),
    };
    let mut head = format!("HTTP/1.1 {status} X\r\netag: {etag}\r\n");
    if !same {
        let _ = write!(head, "content-length: {}\r\n", length - from);
    }
    if begin.is_some() {
        let _ = write!(head, "content-range: bytes {from}-{}/{length}\r\n", length - 1);
    }
    head.push_str("\r\n");
    let number = {
        let mut log = inner.log.lock().unwrap();
        log.push(Sent { path: path.to_owned(), bytes: 0, whole: false });
        log.len() - 1
    };
    wait(inner, |hold| match hold {
        Hold::Requests(prefix, count) if path.starts_with(prefix.as_str()) => {
            let log = inner.log.lock().unwrap();
            log.iter()
                .take(number + 1)
                .filter(|sent| sent.path.starts_with(prefix.as_str()))
                .count()
                > *count
        }
        _ => false,
    });
    stream.write_all(head.as_bytes()).ok()?;
    let mut sent = from;
    while sent < length {
        wait(inner, |hold| matches!(hold, Hold::Body(held, byte) if held == path && sent >= *byte));
        let next = match &*inner.hold.lock().unwrap() {
            Hold::Body(held, byte) if held == path => length.min(*byte).min(sent + 65_536),
            _ => length.min(sent + 65_536),
        };
        stream.write_all(&page.body[sent..next]).ok()?;
        sent = next;
        if let Some(printed) = inner.log.lock().unwrap().get_mut(number) {
            printed.bytes = sent - from;
            printed.whole = sent == length;
        }
    }
    if from == length
        && let Some(printed) = inner.log.lock().unwrap().get_mut(number)
    {
        printed.whole = true;
    }
    (request.header("connection") != Some("close")).then_some(())
}

/// Waits while bodies are held back.
fn wait(inner: &Inner, mut held: impl FnMut(&Hold) -> bool) {
    let mut hold = inner.hold.lock().unwrap();
    while held(&hold) {
        hold = inner.opened.wait(hold).unwrap();
    }
}
