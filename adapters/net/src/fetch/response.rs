//! Responses, and checks that they match the request.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};

use crate::address::error::{Error, ErrorKind};
use crate::fetch::challenge;
use crate::fetch::request::{Request, UnaskedEncoding};
use crate::limits::pause::retry_after;
use crate::transport::channel::{Body, Channel};
use crate::transport::connection::Failure;
use crate::transport::failure::failed;
use crate::transport::host::Host;
use crate::transport::shared::{Place, RowFault};
use crate::unpack::gunzip::{Gunzip, Piece};
use crate::unpack::unpacker::UnpackError;

/// Most bytes of an unread body that are read so that its connection can be used again.
const DRAIN_BYTES: usize = 64 << 10;
/// Longest time to wait for such a body.
const DRAIN_TIME: Duration = Duration::from_secs(1);
/// Most bytes allocated in advance for a `Content-Length`.
const RESERVE_BYTES: u64 = 1 << 20;

/// The response to a request: its head, and its body while it is received.
///
/// It may be dropped before the end: a small rest that has arrived is read, otherwise the
/// connection is closed.
pub struct Response {
    status: StatusCode,
    headers: HeaderMap,
    url: String,
    body: Body,
    host: Arc<Host>,
    /// `None` after the end of the body.
    wire: Option<(Channel, Place)>,
    gunzip: Option<Box<Gunzip>>,
    delivered: u64,
    limit: u64,
    failed: bool,
    /// Pieces of the body that were received before they were requested.
    early: VecDeque<Bytes>,
    /// Whether redirects led here, all of them permanent.
    pub(crate) has_moved: bool,
}

/// The `Content-Range` of a partial response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRange {
    /// Offset of the first byte.
    pub first: u64,
    /// Offset of the last byte.
    pub last: u64,
    /// Length of the whole representation, if reported.
    pub total: Option<u64>,
}

/// All values of a header in a response. Some servers send more than visible ASCII, against
/// [rfc9110 §5.5]: bytes that are not UTF-8 are replaced.
///
/// ```
/// let mut headers = abreast_net::HeaderMap::new();
/// headers.append("link", abreast_net::HeaderValue::from_bytes(b"</a>; title=\"caf\xe9\"").unwrap());
/// assert_eq!(abreast_net::values(&headers, "link"), ["</a>; title=\"caf\u{fffd}\""]);
/// ```
pub fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

impl Response {
    pub(crate) fn new(
        head: http::response::Parts,
        body: Body,
        url: String,
        host: Arc<Host>,
        channel: Channel,
        place: Place,
        request: &Request<'_>,
    ) -> Self {
        let limit = host.shared.options.max_body_bytes;
        let mut response = Self {
            status: head.status,
            headers: head.headers,
            url,
            body,
            host,
            wire: Some((channel, place)),
            gunzip: None,
            delivered: 0,
            limit,
            failed: false,
            early: VecDeque::new(),
            has_moved: false,
        };
        if response.is_at_end() {
            response.release();
        } else if response.is_gzip()
            && (response.asked_for_gzip(request)
                || request.unasked_encoding == UnaskedEncoding::Decode)
        {
            response.gunzip = Some(Box::new(Gunzip::new()));
        }
        response
    }

    /// Checks that this is a response to the request.
    pub(crate) fn check(&self, request: &Request<'_>) -> Result<(), Error> {
        if let Some(product) = challenge::in_headers(&self.headers) {
            return Err(self.challenged(product));
        }
        let status = self.status.as_u16();
        let wrong = |message: String| {
            Err(Error::new(ErrorKind::Status, &self.url, message)
                .with_status(status, false, None)
                .with_help("the server violates HTTP; report it to its operator"))
        };
        match status {
            304 if !request.is_conditional() => {
                wrong("answered 304 to a request without condition".into())
            }
            204 if !request.head && request.post.is_none() => {
                wrong("answered 204, no content, to a GET".into())
            }
            206 if request.usable_range().is_none() => {
                wrong("answered with a part though the whole was asked for".into())
            }
            200..=599 => {
                self.check_framing()?;
                self.check_encoding(request)
            }
            _ => wrong(format!("answered with status {status}")),
        }
    }

    /// We send no `TE`, so every coding except `chunked` is invalid. A length in addition to
    /// `chunked` is contradictory [rfc9112 §6.3]: two readers would disagree about the end of the
    /// response.
    fn check_framing(&self) -> Result<(), Error> {
        let mut codings = self.headers.get_all(header::TRANSFER_ENCODING).iter();
        let Some(first) = codings.next() else { return Ok(()) };
        if codings.next().is_some()
            || !first.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked")
        {
            return Err(Error::new(
                ErrorKind::Encoding,
                &self.url,
                format!("the body has Transfer-Encoding {first:?}"),
            ));
        }
        if self.headers.contains_key(header::CONTENT_LENGTH) {
            let message = "the answer has both a Content-Length and a Transfer-Encoding";
            return Err(Error::new(ErrorKind::Protocol, &self.url, message));
        }
        Ok(())
    }

    fn check_encoding(&self, request: &Request<'_>) -> Result<(), Error> {
        if self.wire.is_none()
            || !self.status.is_success()
            || request.unasked_encoding == UnaskedEncoding::Raw
        {
            return Ok(());
        }
        let encodings = self.encodings();
        let asked =
            self.asked_for_gzip(request) || request.unasked_encoding == UnaskedEncoding::Decode;
        if encodings.is_empty() || (asked && self.is_gzip()) {
            return Ok(());
        }
        let message = format!(
            "the body has Content-Encoding {:?}, which was not asked for",
            encodings.join(", ")
        );
        Err(Error::new(ErrorKind::Encoding, &self.url, message))
    }

    fn asked_for_gzip(&self, request: &Request<'_>) -> bool {
        request.accept_gzip && request.usable_range().is_none() && self.host.shared.options.gzip
    }

    /// The content encodings in the order in which they were applied, without `identity`.
    fn encodings(&self) -> Vec<String> {
        let values = self.headers.get_all(header::CONTENT_ENCODING).iter();
        let texts =
            values.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
        let names = texts.flat_map(|text| {
            text.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>()
        });
        names.filter(|name| !name.is_empty() && name != "identity").collect()
    }

    fn is_gzip(&self) -> bool {
        self.headers.contains_key(header::CONTENT_ENCODING)
            && matches!(&self.encodings()[..], [one] if one == "gzip" || one == "x-gzip")
    }

    /// HTTP status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether the resource has moved to [`Self::url`]: redirects led there, and all of them are permanent
    /// [rfc9110 §15.4.2, §15.4.9].
    pub fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// First value of a header, if it exists and is visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// All values of a header; bytes that are not UTF-8 are replaced.
    pub fn values(&self, name: &str) -> Vec<String> {
        values(&self.headers, name)
    }

    /// All headers of the response.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The URL that answered: the last one after redirects, without credentials and fragment.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The announced length of the body as sent, before unpacking.
    pub fn content_length(&self) -> Option<u64> {
        self.header(header::CONTENT_LENGTH.as_str())?.trim().parse().ok()
    }

    /// The range of a partial response.
    pub fn content_range(&self) -> Option<ContentRange> {
        let (range, total) = self
            .header(header::CONTENT_RANGE.as_str())?
            .trim()
            .split_once(' ')
            .filter(|(unit, _)| unit.eq_ignore_ascii_case("bytes"))?
            .1
            .split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let number = |text: &str| {
            text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
        };
        let total = if total == "*" { None } else { Some(number(total)?) };
        let range = ContentRange { first: number(first)?, last: number(last)?, total };
        (range.first <= range.last && total.is_none_or(|total| range.last < total)).then_some(range)
    }

    /// Whether the body is exactly the rest after `offset` bytes of the version with this entity
    /// tag: status 206, the same strong tag, a range from `offset` to the very end, and a matching
    /// length. If not, the body must not be joined to the part at hand: start over.
    pub fn is_partial_from(&self, offset: u64, etag: &str) -> bool {
        let Some(range) = self.content_range() else { return false };
        self.status == StatusCode::PARTIAL_CONTENT
            && etag.starts_with('"')
            && self.header(header::ETAG.as_str()) == Some(etag)
            && self.headers.get_all(header::CONTENT_RANGE).iter().count() == 1
            && range.first == offset
            && range.total == range.last.checked_add(1)
            && self
                .content_length()
                .is_none_or(|length| length.checked_sub(1) == Some(range.last - range.first))
    }

    /// Whether this response is not the requested rest after `offset` bytes, so that the whole
    /// should be requested instead.
    pub(crate) fn is_no_rest_from(&self, offset: u64, etag: &str) -> bool {
        match self.status {
            StatusCode::RANGE_NOT_SATISFIABLE => true,
            StatusCode::PARTIAL_CONTENT => !self.is_partial_from(offset, etag),
            _ => self.is_part_as_whole(),
        }
    }

    /// Whether the status means a complete response: 200, or 203 from a proxy that may have changed
    /// the content [rfc9110 §15.3.4].
    pub fn is_whole(&self) -> bool {
        matches!(self.status, StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION)
    }

    /// Whether a response with status 200 has a `Content-Range` of a part.
    fn is_part_as_whole(&self) -> bool {
        self.is_whole()
            && self.content_range().is_some_and(|range| {
                let is_whole = range.total.is_some() && range.total == self.content_length();
                let length = range.last.saturating_add(1);
                let is_part = range.first > 0 || range.total.is_some_and(|total| length < total);
                is_part && !is_whole
            })
    }

    /// Turns every status but 2xx and 304 into an error; 429, 502, 503 and 504 are transient.
    /// Status 200 with a part of the requested resource is a transient error too.
    ///
    /// # Errors
    /// `http.status`.
    pub fn require_success(self) -> Result<Self, Error> {
        if self.is_part_as_whole() {
            let range = self.header(header::CONTENT_RANGE.as_str()).unwrap_or_default();
            let message =
                format!("the server answered 200 (OK) with only a part of the resource: {range}");
            let error = Error::new(ErrorKind::Status, &self.url, message);
            return Err(error.with_status(200, true, None));
        }
        let status = self.status.as_u16();
        if self.status.is_success() || status == 304 {
            return Ok(self);
        }
        let transient = matches!(status, 429 | 502 | 503 | 504);
        let pause = self
            .header(header::RETRY_AFTER.as_str())
            .and_then(|value| retry_after(value, SystemTime::now()));
        let reason =
            self.status.canonical_reason().unwrap_or("unknown status").to_ascii_lowercase();
        let error = Error::new(
            ErrorKind::Status,
            &self.url,
            format!("the server answered {status}, {reason}"),
        )
        .with_status(status, transient, pause.filter(|_| transient));
        Err(match status {
            401 | 403 => {
                error.with_help("give credentials for this host, or ask its operator for access")
            }
            _ => error,
        })
    }

    /// Reads the begin of a web page, and refuses it if it is the challenge page of a bot wall. The
    /// bytes are part of the body all the same. Call it for bodies that no digest verifies.
    ///
    /// # Errors
    /// `http.challenge`, and those of [`chunk`](Self::chunk).
    pub async fn refuse_challenge(&mut self) -> Result<(), Error> {
        if !challenge::is_page_type(&self.headers) {
            return Ok(());
        }
        let mut begin = Vec::new();
        while begin.len() < challenge::SEARCHED {
            let piece = poll_fn(|cx| self.poll_chunk(cx)).await;
            match piece {
                Ok(Some(data)) => {
                    begin.extend_from_slice(&data);
                    self.early.push_back(data);
                }
                Ok(None) => break,
                Err(error) => {
                    self.failed = true;
                    self.close();
                    return Err(error);
                }
            }
        }
        match challenge::in_page(&begin) {
            None => Ok(()),
            Some(product) => Err(self.challenged(product)),
        }
    }

    fn challenged(&self, product: &str) -> Error {
        let status = self.status.as_u16();
        let message = format!(
            "{product} answered {status} with a challenge for browsers in place of the resource"
        );
        Error::new(ErrorKind::Challenge, &self.url, message).with_help(
            "ask the operator to exempt these addresses, or this program, from the bot wall; --contact shows the operator who asks",
        )
    }

    /// Sets another limit for the unpacked body. A longer body fails with `http.size`.
    pub fn set_limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    /// The next piece of the body, unpacked if necessary; `None` at its regular end.
    ///
    /// # Errors
    /// `http.truncated`, `net.timeout`, `net.slow`, `http.protocol`, `http.encoding`, `http.size`.
    /// After an error the connection is closed and only errors follow.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let piece = match self.early.pop_front() {
            Some(data) => Ok(Some(data)),
            None => poll_fn(|cx| self.poll_chunk(cx)).await,
        };
        let error = match piece {
            Ok(None) => return Ok(None),
            Ok(Some(data)) => {
                self.delivered += data.len() as u64;
                if self.delivered <= self.limit {
                    return Ok(Some(data));
                }
                self.too_large()
            }
            Err(error) => error,
        };
        self.failed = true;
        self.close();
        Err(error)
    }

    /// Appends the whole body, at most `limit` bytes, to a buffer that the caller may reuse.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk); the buffer then contains the bytes before the failure.
    pub async fn read_to(&mut self, buffer: &mut Vec<u8>, limit: u64) -> Result<(), Error> {
        self.limit = self.limit.min(limit);
        if self.wire.is_some() && self.gunzip.is_none() {
            let announced = self.left().map_or(0, |(least, _)| least);
            if announced > self.limit {
                self.failed = true;
                self.close();
                return Err(self.too_large());
            }
            buffer.reserve(announced.min(RESERVE_BYTES) as usize);
        }
        while let Some(data) = self.chunk().await? {
            buffer.extend_from_slice(&data);
        }
        Ok(())
    }

    /// Gives up the body. A short rest that arrives at once is read, so that the connection can be
    /// used again.
    pub async fn discard(mut self) {
        let left = self.left().and_then(|(_, most)| most);
        if left.is_some_and(|left| left <= DRAIN_BYTES as u64) {
            let rest = async { while let Ok(Some(_)) = poll_fn(|cx| self.poll_wire(cx)).await {} };
            let _ = tokio::time::timeout(DRAIN_TIME, rest).await;
        }
    }

    fn too_large(&self) -> Error {
        Error::new(
            ErrorKind::Size,
            &self.url,
            format!("the body is larger than {} bytes", self.limit),
        )
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        if self.failed {
            return Poll::Ready(Err(Error::new(
                ErrorKind::Truncated,
                &self.url,
                "reading the body has failed before",
            )));
        }
        let Some(mut gunzip) = self.gunzip.take() else { return self.poll_wire(cx) };
        let result = self.poll_unpacked(cx, &mut gunzip);
        self.gunzip = Some(gunzip);
        result
    }

    fn poll_unpacked(
        &mut self,
        cx: &mut Context<'_>,
        gunzip: &mut Gunzip,
    ) -> Poll<Result<Option<Bytes>, Error>> {
        loop {
            match gunzip.next() {
                Ok(Piece::Data(data)) => return Poll::Ready(Ok(Some(data))),
                Ok(Piece::End) => return Poll::Ready(Ok(None)),
                Ok(Piece::Hungry) => match std::task::ready!(self.poll_wire(cx))? {
                    Some(packed) => gunzip.feed(packed),
                    None => gunzip.finish(),
                },
                Err(e) => return Poll::Ready(Err(self.not_unpacked(&e))),
            }
        }
    }

    fn not_unpacked(&self, e: &UnpackError) -> Error {
        let kind = match e {
            UnpackError::Ratio | UnpackError::Length(_) => ErrorKind::Size,
            UnpackError::Truncated => ErrorKind::Truncated,
            UnpackError::Broken(_) | UnpackError::Followed => ErrorKind::Encoding,
        };
        Error::new(kind, &self.url, e.to_string())
    }

    /// The next piece as sent.
    fn poll_wire(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        let Some((channel, _)) = &mut self.wire else { return Poll::Ready(Ok(None)) };
        let piece = channel.poll_body(cx, &self.host.shared.options, &mut self.body);
        Poll::Ready(match std::task::ready!(piece) {
            Ok(piece) => {
                if piece.is_none() || self.is_at_end() {
                    self.release();
                }
                Ok(piece)
            }
            Err(failure) => {
                if channel.has_ended(&failure) {
                    self.host.forget(channel);
                }
                if channel.is_pipelined() && matches!(failure, Failure::Closed) {
                    self.host.state.note_fault(RowFault::BrokenOff);
                }
                Err(failed(failure, 0, &self.url))
            }
        })
    }

    /// Bytes of the body that have not been received: at least, and at most if known.
    fn left(&self) -> Option<(u64, Option<u64>)> {
        self.wire.as_ref().map(|(channel, _)| channel.left(&self.body))
    }

    /// Whether the end of the body has been received.
    fn is_at_end(&self) -> bool {
        self.wire.as_ref().is_none_or(|(channel, _)| channel.is_at_end(&self.body))
    }

    /// Releases the connection and the host's place at the end of the body.
    fn release(&mut self) {
        if let Some((channel, _place)) = self.wire.take() {
            self.host.give_back(channel);
        }
    }

    /// Closes the connection, which cannot be used again.
    fn close(&mut self) {
        self.wire = None;
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        // Read the bytes that arrived already, without waiting: a small body is often complete, and
        // its connection can be used again.
        let mut cx = Context::from_waker(Waker::noop());
        let mut drained = 0;
        while self.wire.is_some() && drained <= DRAIN_BYTES {
            match self.poll_wire(&mut cx) {
                Poll::Ready(Ok(Some(data))) => drained += data.len(),
                _ => break,
            }
        }
        self.close();
    }
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}
