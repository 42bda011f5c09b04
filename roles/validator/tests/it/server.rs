//! A web server for one test: an answer for each path.

use abreast_testkit::http;
use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, OnceLock};

/// What is answered at a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) body: Vec<u8>,
    pub(crate) headers: BTreeMap<String, String>,
    /// Conditional requests are answered as if they were none.
    pub(crate) unconditional: bool,
    /// From the second request on this is answered.
    pub(crate) later: Option<Box<Answer>>,
    /// Headers that are another for HEAD; `Status` among them is no header.
    pub(crate) for_head: BTreeMap<String, String>,
    /// What is answered when `Accept` contains a text.
    pub(crate) by_accept: Option<(&'static str, Box<Answer>)>,
    /// What POST is answered with: a status, a type, a text.
    pub(crate) post: Option<(&'static str, &'static str, &'static str)>,
}

pub(crate) type Answers = BTreeMap<String, Answer>;

/// Serves until it is dropped.
pub(crate) struct Server {
    server: http::Server,
}

impl Server {
    /// Serves what `make` gives for the base URL.
    pub(crate) fn start(make: impl FnOnce(&str) -> Answers) -> Self {
        let answers = Arc::new(OnceLock::<Answers>::new());
        let (own, times) = (Arc::clone(&answers), Mutex::new(HashMap::new()));
        let server = http::Server::new(move |request, stream| {
            let is_again = {
                let mut times = times.lock().unwrap();
                let times = times.entry(request.target().to_owned()).or_insert(0);
                *times += 1;
                *times > 1
            };
            serve(request, stream, own.wait(), is_again)
        });
        assert!(answers.set(make(&server.url(""))).is_ok());
        Self { server }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// The paths of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.server.seen().iter().map(|request| request.target().to_owned()).collect()
    }
}

/// Answers a request; returns whether the connection is kept.
fn serve(
    request: &http::Request,
    stream: &mut TcpStream,
    answers: &Answers,
    is_again: bool,
) -> bool {
    let found = answers.get(request.target());
    if let Some((status, kind, said)) = found.and_then(|answer| answer.post) {
        let headers = format!("Content-Type: {kind}\r\n");
        return request.method() == "POST" && http::send(stream, status, &headers, said.as_bytes());
    }
    let Some(answer) =
        found.and_then(|answer| answer.later.as_deref().filter(|_| is_again)).or(found)
    else {
        return http::send(stream, "404 Not Found", "", b"");
    };
    let accept = request.header("accept").unwrap_or_default();
    let other = answer.by_accept.as_ref().filter(|(text, _)| accept.contains(text));
    let answer = other.map_or(answer, |(_, other)| other);
    let condition = request.header("if-none-match");
    let same = condition.is_some() && condition == answer.headers.get("ETag").map(String::as_str);
    let is_head = request.method() == "HEAD";
    let mut headers = answer.headers.clone();
    if is_head {
        headers.extend(answer.for_head.clone());
    }
    let own = headers.remove("Status");
    let status = if let Some(own) = &own {
        own.as_str()
    } else if answer.headers.contains_key("Location") {
        "302 Found"
    } else if same && !answer.unconditional {
        "304 Not Modified"
    } else {
        "200 OK"
    };
    let mut out = format!("HTTP/1.1 {status}\r\n").into_bytes();
    for (name, value) in &headers {
        out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    let body: &[u8] = if status.starts_with("304") { b"" } else { &answer.body };
    let chunked = answer.headers.contains_key("Transfer-Encoding");
    if !status.starts_with("304") && !chunked && !headers.contains_key("Content-Length") {
        out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    if !is_head {
        if chunked && !body.is_empty() {
            out.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
        }
        out.extend_from_slice(body);
        if chunked {
            let end: &[u8] = if body.is_empty() { b"0\r\n\r\n" } else { b"\r\n0\r\n\r\n" };
            out.extend_from_slice(end);
        }
    }
    stream.write_all(&out).is_ok()
}
