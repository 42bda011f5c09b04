//! A small web server for one test.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

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
    /// What POST is answered with: a status, a type, a text.
    pub(crate) post: Option<(&'static str, &'static str, &'static str)>,
}

pub(crate) type Answers = BTreeMap<String, Answer>;

/// Serves until it is dropped.
pub(crate) struct Server {
    pub(crate) base: String,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves what `make` gives for the base URL.
    pub(crate) fn start(make: impl FnOnce(&str) -> Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let answers = Arc::new(make(&base));
        let (stop, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (stopped, noted) = (Arc::clone(&stop), Arc::clone(&requests));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (answers, noted) = (Arc::clone(&answers), Arc::clone(&noted));
                std::thread::spawn(move || serve(&stream.unwrap(), &answers, &noted));
            }
        });
        Self { base, requests, stop, thread: Some(thread) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.base.trim_start_matches("http://"));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(stream: &TcpStream, answers: &Answers, requests: &Mutex<Vec<String>>) {
    let mut input = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let method = lines[0].split(' ').next().unwrap_or_default().to_owned();
        let path = lines[0].split(' ').nth(1).unwrap_or("/").to_owned();
        if method == "POST" {
            requests.lock().unwrap().push(path.clone());
        }
        if let Some((status, kind, said)) = answers.get(&path).and_then(|answer| answer.post) {
            let length = said.len();
            let out = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{said}");
            if method != "POST" || (&mut &*stream).write_all(out.as_bytes()).is_err() {
                return;
            }
            continue;
        }
        let again = {
            let mut requests = requests.lock().unwrap();
            requests.push(path.clone());
            requests.iter().filter(|request| **request == path).count() > 1
        };
        let condition =
            lines.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("if-none-match: ").map(str::to_owned));
        let mut out = Vec::new();
        let answer = answers.get(&path);
        match answer.and_then(|answer| answer.later.as_deref().filter(|_| again)).or(answer) {
            None => out.extend_from_slice(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            Some(answer) => {
                let same =
                    condition.is_some() && condition.as_deref() == answer.headers.get("ETag").map(String::as_str);
                let is_head = method == "HEAD";
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
                out.extend_from_slice(format!("HTTP/1.1 {status}\r\n").as_bytes());
                for (name, value) in &headers {
                    out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
                }
                let body: &[u8] = if status.starts_with("304") { b"" } else { &answer.body };
                let chunked = answer.headers.contains_key("Transfer-Encoding");
                if !status.starts_with("304") && !chunked {
                    out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
                }
                out.extend_from_slice(b"\r\n");
                if is_head {
                    if (&mut &*stream).write_all(&out).is_err() {
                        return;
                    }
                    continue;
                }
                if chunked && !body.is_empty() {
                    out.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
                }
                out.extend_from_slice(body);
                if chunked {
                    let end: &[u8] = if body.is_empty() { b"0\r\n\r\n" } else { b"\r\n0\r\n\r\n" };
                    out.extend_from_slice(end);
                }
            }
        }
        if (&mut &*stream).write_all(&out).is_err() {
            return;
        }
    }
}
