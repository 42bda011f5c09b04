//! Responses: common headers, and problem documents [rfc9457 §3].

use crate::message::body::{FileBody, ResponseBody};
use crate::message::conditional::{Precondition, http_date, judge};
use crate::message::range::{RequestedRange, wanted};
use crate::message::stored_body::StoredBody;
use abreast_core::contents::{Content as StoredContent, ContentSource};
use abreast_core::{Clock as _, LogError, SystemClock};
use abreast_folder::Stat;
use abreast_source::publish::Body;
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, IF_RANGE, LAST_MODIFIED, LOCATION, RANGE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// How long a URL in an object store is valid to which clients are redirected.
pub(crate) const REDIRECT_VALID: Duration = Duration::from_secs(600);
/// The digest of a representation [rfc9530 §3].
pub(crate) const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

pub(crate) type Answer = Response<ResponseBody>;

/// A problem document, with the problem and help.
pub(crate) fn problem(status: StatusCode, detail: &str) -> Answer {
    let title = status.canonical_reason().unwrap_or("Problem");
    let body = format!(
        "{{\"type\":\"about:blank\",\"title\":\"{title}\",\"status\":{},\"detail\":\"{}\"}}\n",
        status.as_u16(),
        escape_json(detail)
    );
    let mut answer = Response::new(ResponseBody::from(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// Seconds after which clients should retry while a store is out of reach.
const AWAY_SECONDS: u32 = 5;

/// 503, with the time after which the client should retry.
pub(crate) fn try_later(detail: &str, seconds: u32) -> Answer {
    let mut answer = problem(StatusCode::SERVICE_UNAVAILABLE, detail);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

/// Whether a request may succeed later, because a store cannot be reached now.
pub(crate) fn is_passing(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let of_log = error.downcast_ref::<LogError>();
        let of_io = error.downcast_ref::<io::Error>();
        if of_log.is_some_and(LogError::is_passing)
            || of_io.is_some_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
        {
            return true;
        }
        // The source of an I/O error is that of the error inside.
        cause = match of_io.and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

/// The answer while a store cannot be reached. The log has one line a minute.
pub(crate) fn out_of_reach(error: &dyn std::fmt::Display) -> Answer {
    static LOGGED: AtomicI64 = AtomicI64::new(0);
    let minute = now_seconds() / 60;
    if LOGGED.swap(minute, Ordering::Relaxed) != minute {
        tracing::error!("requests are answered with 503, since a store cannot be reached: {error}");
    }
    try_later("the store is out of reach", AWAY_SECONDS)
}

fn now_seconds() -> i64 {
    SystemClock.now().as_seconds()
}

/// A short text for people or probes.
pub(crate) fn text(content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(ResponseBody::from(body));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// Redirects to another page, with GET.
pub(crate) fn see_other(page: &str) -> Answer {
    let mut answer = text("text/plain; charset=utf-8", format!("see {page}\n"));
    *answer.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(location) = HeaderValue::from_str(page) {
        answer.headers_mut().insert(LOCATION, location);
    }
    answer
}

/// The source of the bytes of a representation.
pub(crate) enum Content {
    Memory(Bytes),
    /// An open file, and its status when it was opened.
    File(Arc<File>, Stat),
    /// A part of an open file, and its offset.
    Part(Arc<File>, Stat, u64),
    /// A stored content that is not on this machine.
    Stored(Arc<dyn ContentSource>),
}

impl Content {
    /// The bytes of a document.
    pub(crate) fn of(body: &Body) -> io::Result<Self> {
        Ok(match body {
            Body::Memory(bytes) => Self::Memory(bytes.clone()),
            Body::File(file) => {
                let file = File::open(file.path())?;
                let stat = Stat::of(&file).map_err(io::Error::other)?;
                Self::File(Arc::new(file), stat)
            }
        })
    }

    /// The bytes of a stored content.
    pub(crate) fn of_stored(content: StoredContent) -> io::Result<Self> {
        if let Some(bytes) = content.in_memory() {
            return Ok(Self::Memory(Bytes::copy_from_slice(bytes)));
        }
        let Some(file) = content.file() else { return Ok(Self::Stored(content.into_source())) };
        let file = File::from(file.try_clone_to_owned()?);
        let stat = Stat::of(&file).map_err(io::Error::other)?;
        Ok(Self::File(Arc::new(file), stat))
    }
}

/// A representation for conditional requests and range requests.
pub(crate) struct Representation {
    pub(crate) content: Content,
    pub(crate) length: u64,
    /// The entity tag, in quotes.
    pub(crate) tag: String,
    /// The modification time, in seconds since 1970.
    pub(crate) modified: Option<i64>,
    pub(crate) content_type: HeaderValue,
    pub(crate) dated: Dated,
    pub(crate) more: Vec<(HeaderName, HeaderValue)>,
}

/// How exactly the second of `modified` identifies a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dated {
    /// A further change in that second is possible. Until the second is over, the date is used in
    /// comparisons but not sent.
    Live,
    /// Several versions may have the same second, so only the entity tag identifies the client's
    /// version.
    Coarse,
    /// The representation never changes.
    Final,
}

impl Representation {
    /// Redirects a request that may be redirected to a URL with the bytes, unless a precondition fails. The
    /// content is not used.
    pub(crate) fn redirect(mut self, url: &str, request: &HeaderMap) -> Answer {
        let (mut answer, is_complete) = self.head(request);
        if is_complete {
            return answer;
        }
        let headers = answer.headers_mut();
        // The other fields describe bytes that this answer does not have.
        for name in [ETAG, LAST_MODIFIED, CONTENT_LOCATION, REPR_DIGEST] {
            headers.remove(name);
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        if let Ok(url) = HeaderValue::from_str(url) {
            headers.insert(LOCATION, url);
        }
        *answer.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        answer
    }

    /// The answer to a GET or HEAD with these headers.
    pub(crate) fn answer(mut self, method: &Method, request: &HeaderMap) -> Answer {
        let (mut answer, is_complete) = self.head(request);
        if is_complete {
            return answer;
        }
        let headers = answer.headers_mut();
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // With a weak or outdated validator, the answer is the whole representation
        // [rfc9110 §13.1.5].
        let current = request
            .get(IF_RANGE)
            .is_none_or(|validator| validator.as_bytes() == self.tag.as_bytes());
        // Only GET requests can have ranges [rfc9110 §14.2].
        let range = request
            .get(RANGE)
            .filter(|_| current && method == Method::GET)
            .and_then(|range| range.to_str().ok());
        match wanted(range, self.length) {
            RequestedRange::Whole => {
                headers.insert(CONTENT_TYPE, self.content_type);
                headers.insert(CONTENT_LENGTH, HeaderValue::from(self.length));
                *answer.body_mut() = part(self.content, 0, self.length);
            }
            RequestedRange::Unsatisfiable => {
                let mut answer =
                    problem(StatusCode::RANGE_NOT_SATISFIABLE, "the range lies behind the end");
                if let Ok(range) = HeaderValue::from_str(&format!("bytes */{}", self.length)) {
                    answer.headers_mut().insert(CONTENT_RANGE, range);
                }
                return answer;
            }
            RequestedRange::Ranges(ranges) if ranges.len() == 1 => {
                let (first, last) = ranges[0];
                *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
                let headers = answer.headers_mut();
                headers.insert(CONTENT_TYPE, self.content_type);
                if let Ok(range) =
                    HeaderValue::from_str(&format!("bytes {first}-{last}/{}", self.length))
                {
                    headers.insert(CONTENT_RANGE, range);
                }
                headers.insert(CONTENT_LENGTH, HeaderValue::from(last - first + 1));
                *answer.body_mut() = part(self.content, first, last - first + 1);
            }
            RequestedRange::Ranges(ranges) => {
                *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
                return multipart(answer, &self.content, self.length, &self.content_type, &ranges);
            }
        }
        answer
    }

    /// An answer with the fields of the representation, and whether it is complete, because of a precondition.
    fn head(&mut self, request: &HeaderMap) -> (Answer, bool) {
        let mut answer = Response::new(ResponseBody::empty());
        let headers = answer.headers_mut();
        headers.reserve(12);
        if let Ok(tag) = HeaderValue::from_str(&self.tag) {
            headers.insert(ETAG, tag);
        }
        let is_new = self.dated == Dated::Live
            && self.modified.is_some_and(|modified| modified >= now_seconds());
        if let Some(Ok(modified)) = self
            .modified
            .filter(|_| !is_new)
            .map(|modified| HeaderValue::from_str(&http_date(modified)))
        {
            headers.insert(LAST_MODIFIED, modified);
        }
        headers.extend(std::mem::take(&mut self.more));
        match judge(request, &self.tag, self.modified, self.dated == Dated::Coarse || is_new) {
            Precondition::Send => {}
            Precondition::NotModified => {
                *answer.status_mut() = StatusCode::NOT_MODIFIED;
                return (answer, true);
            }
            Precondition::Failed => {
                headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
                *answer.status_mut() = StatusCode::PRECONDITION_FAILED;
                return (answer, true);
            }
        }
        (answer, false)
    }
}

fn part(content: Content, start: u64, length: u64) -> ResponseBody {
    match content {
        Content::Memory(bytes) => {
            ResponseBody::from(bytes.slice(start as usize..(start + length) as usize))
        }
        Content::File(file, stat) => ResponseBody::File(FileBody::new(file, stat, start, length)),
        Content::Part(file, stat, from) => {
            ResponseBody::File(FileBody::new(file, stat, from + start, length))
        }
        Content::Stored(source) => ResponseBody::Stored(StoredBody::new(source, start, length)),
    }
}

/// Builds `multipart/byteranges`: at most 16 parts that do not overlap.
fn multipart(
    mut answer: Answer,
    content: &Content,
    length: u64,
    content_type: &HeaderValue,
    ranges: &[(u64, u64)],
) -> Answer {
    const BOUNDARY: &str = "abreast-byteranges-7d1f0c";
    let mut frames: Vec<ResponseBody> = Vec::new();
    let mut total = 0;
    for (first, last) in ranges {
        let head = format!(
            "\r\n--{BOUNDARY}\r\nContent-Type: {}\r\nContent-Range: bytes {first}-{last}/{length}\r\n\r\n",
            content_type.to_str().unwrap_or("application/octet-stream")
        );
        total += head.len() as u64 + last - first + 1;
        frames.push(ResponseBody::from(head));
        let content = match content {
            Content::Memory(bytes) => Content::Memory(bytes.clone()),
            Content::File(file, stat) => Content::File(Arc::clone(file), *stat),
            Content::Part(file, stat, from) => Content::Part(Arc::clone(file), *stat, *from),
            Content::Stored(source) => Content::Stored(Arc::clone(source)),
        };
        frames.push(part(content, *first, last - first + 1));
    }
    let end = format!("\r\n--{BOUNDARY}--\r\n");
    total += end.len() as u64;
    frames.push(ResponseBody::from(end));
    let headers = answer.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&format!("multipart/byteranges; boundary={BOUNDARY}"))
    {
        headers.insert(CONTENT_TYPE, value);
    }
    headers.insert(CONTENT_LENGTH, HeaderValue::from(total));
    *answer.body_mut() =
        ResponseBody::Parts(Chain { bodies: frames.into_iter().collect() }.boxed_unsync());
    answer
}

/// Sends bodies one after another.
struct Chain {
    bodies: std::collections::VecDeque<ResponseBody>,
}

impl hyper::body::Body for Chain {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        while let Some(body) = self.bodies.front_mut() {
            match std::task::ready!(std::pin::Pin::new(body).poll_frame(cx)) {
                Some(frame) => return std::task::Poll::Ready(Some(frame)),
                None => drop(self.bodies.pop_front()),
            }
        }
        std::task::Poll::Ready(None)
    }
}

fn escape_json(text: &str) -> String {
    text.chars()
        .flat_map(|character| match character {
            '"' | '\\' => vec!['\\', character],
            control if control < ' ' => vec![' '],
            other => vec![other],
        })
        .collect()
}
