//! Reading of request bodies within limits of size and time.

use super::answers::blocking;
use super::problem::{Problem, ProblemKind, disk_full, full_disk};
use crate::site::api::Api;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

/// Most bytes of a batch.
pub(super) const MAX_BATCH_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of a single record.
pub(super) const MAX_RECORD_BYTES: u64 = 256 * 1024;
/// Bytes of a body that stay in memory until the rest is received.
const IN_MEMORY: usize = 64 * 1024;
/// Minimum rate of the content, in bytes per second, after the time limit of all bodies.
const SLOWEST: u64 = 4 * 1024;

fn too_large(limit: u64) -> Problem {
    Problem::new(ProblemKind::TooLarge, format!("more than {limit} bytes are not taken"))
        .help("send less at once")
}

/// A completely received body: in memory if it is small, otherwise in a temporary file, so that
/// slow clients do not occupy memory.
pub(super) struct Received {
    /// All bytes, or the last bytes that are not in the file yet.
    bytes: Vec<u8>,
    file: Option<File>,
    length: u64,
}

/// Receives a whole body.
pub(super) async fn whole(body: Incoming, limit: u64, api: &Api) -> Result<Received, Problem> {
    if body.size_hint().lower() > limit {
        return Err(too_large(limit));
    }
    let mut received = Received { bytes: Vec::new(), file: None, length: 0 };
    let mut pieces = Pieces::new(body, limit, api.options.body_time);
    while let Some(piece) = pieces.next().await? {
        received.length += piece.len() as u64;
        received.bytes.extend_from_slice(&piece);
        if received.bytes.len() >= IN_MEMORY {
            let folder = api.options.temporary.clone();
            received = blocking(move || received.into_file(&folder)).await?;
        }
    }
    Ok(received)
}

impl Received {
    pub(super) fn len(&self) -> u64 {
        self.length
    }

    fn into_file(mut self, folder: &Path) -> Result<Self, Problem> {
        let mut write = || -> io::Result<()> {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(tempfile::tempfile_in(folder)?),
            };
            file.write_all(&self.bytes)
        };
        write().map_err(|error| temporary_failed(&error))?;
        self.bytes.clear();
        Ok(self)
    }

    /// Returns the bytes. Blocks.
    pub(super) fn into_bytes(self) -> Result<Vec<u8>, Problem> {
        let Some(mut file) = self.file else { return Ok(self.bytes) };
        let mut bytes = Vec::with_capacity(self.length as usize);
        file.rewind()
            .and_then(|()| file.read_to_end(&mut bytes))
            .map_err(|error| temporary_failed(&error))?;
        bytes.extend_from_slice(&self.bytes);
        Ok(bytes)
    }
}

fn temporary_failed(error: &io::Error) -> Problem {
    if full_disk(error).is_some() {
        return disk_full();
    }
    tracing::error!("cannot keep the body of a request in a temporary file: {error}");
    Problem::new(ProblemKind::Store, "the body cannot be kept")
        .help("the server's log has the reason")
}

/// Receives a body in pieces.
pub(super) struct Pieces {
    body: Incoming,
    limit: u64,
    read: u64,
    /// Limit for the whole of a short body; half of this time without a byte is an error too.
    time: Duration,
    begun: tokio::time::Instant,
}

impl Pieces {
    pub(super) fn new(body: Incoming, limit: u64, time: Duration) -> Self {
        Self { body, limit, read: 0, time, begun: tokio::time::Instant::now() }
    }

    /// Returns the next piece, `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let deadline = self.begun + self.time + Duration::from_secs(self.read / SLOWEST);
            let until = deadline.min(tokio::time::Instant::now() + self.time / 2);
            let Ok(frame) = tokio::time::timeout_at(until, self.body.frame()).await else {
                return Err(Problem::new(ProblemKind::TooSlow, "the body did not come in time"));
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame
                .map_err(|_| Problem::new(ProblemKind::Syntax, "the body ended before its end"))?;
            let Ok(data) = frame.into_data() else { continue };
            self.read += data.len() as u64;
            if self.read > self.limit {
                return Err(too_large(self.limit));
            }
            return Ok(Some(data));
        }
    }
}

/// Parses a JSON value.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| unreadable(&error, None))
}

/// The problem for an error in a JSON text, with the line if the text has several.
pub(super) fn unreadable(error: &serde_json::Error, line: Option<usize>) -> Problem {
    let message = abreast_source::links::explain(error);
    let detail = line.map_or(message.clone(), |line| format!("line {line}: {message}"));
    // A data error means that the text is well-formed, but a value is wrong.
    let kind = if error.is_data() { ProblemKind::Field } else { ProblemKind::Syntax };
    Problem::new(kind, detail)
}

/// The decoded value of a query parameter; `+` is not decoded, because it is a character of URIs.
pub(super) fn parameter(
    query: Option<&str>,
    known: &[&str],
    name: &str,
) -> Result<Option<String>, Problem> {
    let mut found = None;
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !known.contains(&key) {
            let shown: String = key.chars().take(40).collect();
            let nearest = abreast_source::links::nearest(key, known);
            return Err(Problem::new(
                ProblemKind::Query,
                format!("unknown parameter `{}`", shown.escape_debug()),
            )
            .help(format!("did you mean `{nearest}`?")));
        }
        if key == name {
            if found.is_some() {
                return Err(Problem::new(ProblemKind::Query, format!("`{name}` is given twice")));
            }
            let decoded = percent_encoding::percent_decode_str(value).decode_utf8();
            let decoded = decoded
                .map_err(|_| Problem::new(ProblemKind::Query, format!("`{name}` is not UTF-8")))?;
            found = Some(decoded.into_owned());
        }
    }
    Ok(found)
}
