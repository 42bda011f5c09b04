//! The access log: one line for each request, in a file or on standard output.
//!
//! Requests pass their lines to a thread and never wait for the disk. If the disk is slower than
//! the requests for long, lines are lost and counted in `abreast_access_log_lost_total`.

use abreast_webtypes::Timestamp;
use http::header::{REFERER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, Version};
use metrics::{Counter, counter};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// Lines that wait for the disk, each at most about 100 KiB because of [`MAX_FIELD`].
const MAX_WAITING: usize = 8_192;
/// Most bytes of a field that a client chooses; longer ones are cut.
const MAX_FIELD: usize = 2_048;
/// Least time between two messages that the log cannot be written.
const ERROR_PAUSE: Duration = Duration::from_secs(60);
/// Most bytes of a request identifier that a proxy sets.
const MAX_ID: usize = 64;

/// The field with the identifier of a request.
pub(crate) const REQUEST_ID: &str = "x-request-id";

/// The form of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessFormat {
    /// The combined format of Apache and nginx, followed by the duration in seconds and the
    /// request identifier.
    #[default]
    Combined,
    /// One JSON object for each request.
    Json,
}

/// Where and how requests are logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogOptions {
    /// The file, to which lines are appended; `-` means standard output.
    pub file: PathBuf,
    /// The form of the lines.
    pub format: AccessFormat,
}

enum Message {
    Line(String),
    End,
}

/// An open access log with the thread that writes it.
pub struct AccessLog {
    lines: SyncSender<Message>,
    format: AccessFormat,
    lost: Counter,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl AccessLog {
    /// Opens the file, or creates it so that only its owner and group can read it, and starts the
    /// thread that writes.
    ///
    /// # Errors
    /// The file cannot be opened, or the system cannot start a thread.
    pub fn open(options: &AccessLogOptions) -> io::Result<Self> {
        let output: Box<dyn Write + Send> = if options.file == Path::new("-") {
            Box::new(io::stdout())
        } else {
            Box::new(open(&options.file)?)
        };
        let (lines, waiting) = sync_channel(MAX_WAITING);
        let name = options.file.display().to_string();
        let lost = counter!("abreast_access_log_lost_total");
        let writer = std::thread::Builder::new().name("access-log".into()).spawn({
            let lost = lost.clone();
            move || write_lines(&waiting, output, &name, &lost)
        })?;
        Ok(Self { lines, format: options.format, lost, writer: Mutex::new(Some(writer)) })
    }

    /// Writes all lines of finished requests, and closes the file. Later lines are lost.
    pub fn close(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            let _ = self.lines.send(Message::End);
            let _ = writer.join();
        }
    }
}

fn open(file: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o640).open(file)
}

/// Writes lines until the end; a batch is flushed once no line waits.
fn write_lines(
    waiting: &Receiver<Message>,
    output: Box<dyn Write + Send>,
    name: &str,
    lost: &Counter,
) {
    let mut output = BufWriter::with_capacity(64 << 10, output);
    let mut logged: Option<Instant> = None;
    while let Ok(Message::Line(line)) = waiting.recv() {
        let mut lines = 0;
        let mut next = Some(Message::Line(line));
        let mut written = Ok(());
        let mut is_end = false;
        while let Some(message) = next {
            let Message::Line(line) = message else {
                is_end = true;
                break;
            };
            lines += 1;
            written = written.and_then(|()| output.write_all(line.as_bytes()));
            next = waiting.try_recv().ok();
        }
        if let Err(error) = written.and_then(|()| output.flush()) {
            lost.increment(lines);
            // The buffer still has the lines that failed, so a full disk cannot repeat a part of one.
            if logged.is_none_or(|at| at.elapsed() >= ERROR_PAUSE) {
                logged = Some(Instant::now());
                tracing::error!("cannot write the access log `{name}`: {error}");
            }
        }
        if is_end {
            return;
        }
    }
}

/// The access log of a server, which can be replaced while the server runs.
#[derive(Default)]
pub(crate) struct CurrentLog(RwLock<Option<Arc<AccessLog>>>);

impl CurrentLog {
    /// Replaces the log, and closes the former one once its lines are written. It waits for the disk.
    pub(crate) fn replace(&self, log: Option<AccessLog>) {
        let log = log.map(Arc::new);
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::replace(&mut *current, log);
        drop(current);
        if let Some(former) = former {
            former.close();
        }
    }

    /// The open log, if requests are logged.
    pub(crate) fn now(&self) -> Option<Arc<AccessLog>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A request, logged when this value is dropped.
pub(crate) struct Entry {
    /// The log that is open at the end of the request gets the line.
    log: Arc<CurrentLog>,
    client: IpAddr,
    /// The name of a known client.
    user: Option<String>,
    method: Method,
    target: Uri,
    version: Version,
    referer: Option<HeaderValue>,
    agent: Option<HeaderValue>,
    id: String,
    begun: Instant,
    time: SystemTime,
    status: Option<StatusCode>,
    bytes: u64,
    is_complete: bool,
}

impl Entry {
    /// Begins the entry of a request; `is_trusted` if a trusted proxy may set its identifier.
    pub(crate) fn new<B>(
        log: &Arc<CurrentLog>,
        request: &Request<B>,
        client: IpAddr,
        is_trusted: bool,
    ) -> Self {
        let headers = request.headers();
        Self {
            log: Arc::clone(log),
            client,
            user: None,
            method: request.method().clone(),
            target: request.uri().clone(),
            version: request.version(),
            referer: headers.get(REFERER).cloned(),
            agent: headers.get(USER_AGENT).cloned(),
            id: is_trusted.then(|| id_in(headers)).flatten().unwrap_or_else(new_id),
            begun: Instant::now(),
            time: SystemTime::now(),
            status: None,
            bytes: 0,
            is_complete: false,
        }
    }

    /// The identifier of the request, which its answer repeats.
    pub(crate) fn id(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.id).ok()
    }

    /// Names the known client of the request.
    pub(crate) fn set_user(&mut self, name: Option<&str>) {
        self.user = name.map(str::to_owned);
    }

    pub(crate) fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
        // Bodies of answers to HEAD are never sent.
        self.is_complete |= self.method == Method::HEAD;
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    fn line(&self, format: AccessFormat) -> String {
        let seconds = self.begun.elapsed().as_secs_f64();
        match format {
            AccessFormat::Combined => self.combined(seconds),
            AccessFormat::Json => self.json(seconds),
        }
    }

    fn combined(&self, seconds: f64) -> String {
        let date = httpdate::fmt_http_date(self.time);
        // `Sat, 28 Nov 2026 21:29:53 GMT`, of which the combined format has other parts.
        let part = |range| date.get(range).unwrap_or_default();
        let (day, month, year, time) = (part(5..7), part(8..11), part(12..16), part(17..25));
        let mut line = format!(
            "{} - {} [{day}/{month}/{year}:{time} +0000] \"",
            self.client,
            self.user.as_deref().unwrap_or("-")
        );
        quote(&mut line, self.method.as_str().as_bytes());
        line.push(' ');
        quote(&mut line, self.target.to_string().as_bytes());
        let status = self.status.map_or(0, |status| status.as_u16());
        let _ = write!(line, " {:?}\" {status:03} {} \"", self.version, self.bytes);
        let or_dash = |value: &Option<HeaderValue>, line: &mut String| match value {
            Some(value) => quote(line, value.as_bytes()),
            None => line.push('-'),
        };
        or_dash(&self.referer, &mut line);
        line.push_str("\" \"");
        or_dash(&self.agent, &mut line);
        let _ = writeln!(line, "\" {seconds:.6} {}", self.id);
        line
    }

    fn json(&self, seconds: f64) -> String {
        let text = |value: &Option<HeaderValue>| {
            let text =
                |value: &HeaderValue| String::from_utf8_lossy(short(value.as_bytes())).into_owned();
            value.as_ref().map(text)
        };
        let target = self.target.to_string();
        let since_epoch = self.time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let line = serde_json::json!({
            "time": Timestamp::from_micros(since_epoch.as_micros() as i64).to_string(),
            "client": self.client,
            "user": self.user,
            "method": self.method.as_str(),
            "target": String::from_utf8_lossy(short(target.as_bytes())),
            "version": format!("{:?}", self.version),
            "status": self.status.map(|status| status.as_u16()),
            "bytes": self.bytes,
            "seconds": (seconds * 1e6).round() / 1e6,
            "complete": self.is_complete,
            "referer": text(&self.referer),
            "user_agent": text(&self.agent),
            "request_id": self.id,
        });
        format!("{line}\n")
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some(log) = self.log.now() else { return };
        if log.lines.try_send(Message::Line(self.line(log.format))).is_err() {
            log.lost.increment(1);
        }
    }
}

fn short(text: &[u8]) -> &[u8] {
    &text[..text.len().min(MAX_FIELD)]
}

/// Appends a text of the client as Apache does: no quotation mark, backslash or control character
/// can end the field or the line.
fn quote(line: &mut String, text: &[u8]) {
    for &byte in short(text) {
        match byte {
            b'"' | b'\\' => {
                line.push('\\');
                line.push(char::from(byte));
            }
            0x20..=0x7e => line.push(char::from(byte)),
            _ => {
                let _ = write!(line, "\\x{byte:02x}");
            }
        }
    }
}

/// The identifier that a request has already, if it is a short word.
fn id_in(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    ((1..=MAX_ID).contains(&id.len()) && id.bytes().all(is_word)).then(|| id.to_owned())
}

/// A new identifier, which differs from each other one of this process, and most likely from all of other processes.
fn new_id() -> String {
    static START: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{:016x}", START.wrapping_add(NUMBER.fetch_add(1, Ordering::Relaxed)))
}
