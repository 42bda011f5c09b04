//! Requests in a row on a connection of HTTP/1.1 [rfc9112 §9.3.2].
//!
//! A request is sent before earlier requests are answered. Answers arrive in the order of the
//! requests, so each request passes the reading half of the connection to the next request. Only
//! regular answers are read here: after any other answer, the request is repeated alone.
//!
//! Requests that are made at the same time are sent in one call: the first one sends them, after the
//! other tasks of its thread have run.

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::Full;
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::settings::options::Options;
use crate::transport::connection::{Failure, Meter, Metered};
use crate::transport::shared::RowFault;
use crate::transport::watchdog::Watchdog;

/// Most unanswered requests on a connection.
pub(crate) const PIPELINE_MAX: usize = 8;
/// Longest silence of a server before a request is repeated alone, since some servers ignore
/// requests that arrive early.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Most header fields of a response, as on other connections.
const FIELDS_MAX: usize = 100;
/// Most bytes of a read.
const READ_BYTES: usize = 32 << 10;

/// A connection of HTTP/1.1 whose server answers requests in a row.
pub(crate) struct Pipeline {
    state: Mutex<State>,
    meter: Arc<Meter>,
}

struct State {
    /// The reading half, while no request has it.
    reader: Option<Reader>,
    /// The requests that wait for the reading half, in the order of sending.
    waiting: VecDeque<oneshot::Sender<Reader>>,
    /// Requests that are still to be sent.
    unsent: Vec<u8>,
    /// The writing half, while no request sends.
    writer: Option<WriteHalf<Metered>>,
    in_flight: usize,
    /// The place of the connection among those to the host, while requests are in flight.
    place: Option<OwnedSemaphorePermit>,
    is_broken: bool,
    /// Whether a request has reported that the connection broke off.
    is_reported: bool,
    idle_since: Instant,
}

/// The reading half of a connection, with bytes that were received early.
struct Reader {
    io: ReadHalf<Metered>,
    buffer: BytesMut,
    watchdog: Watchdog,
}

impl State {
    /// Passes the reading half to the request that was sent next.
    fn pass(&mut self, reader: Reader) {
        if self.is_broken {
            return;
        }
        match self.waiting.pop_front() {
            None => self.reader = Some(reader),
            Some(next) => {
                if next.send(reader).is_err() {
                    self.break_off();
                }
            }
        }
    }

    /// Ends the connection for all requests that have not got the reading half.
    fn break_off(&mut self) {
        self.is_broken = true;
        self.reader = None;
        self.waiting.clear();
    }
}

impl Pipeline {
    /// A connection on which no request is in flight.
    pub(crate) fn new(io: Metered, meter: Arc<Meter>) -> Self {
        let (io, writer) = tokio::io::split(io);
        let reader = Reader { io, buffer: BytesMut::new(), watchdog: Watchdog::new() };
        let state = State {
            reader: Some(reader),
            waiting: VecDeque::new(),
            unsent: Vec::new(),
            writer: Some(writer),
            in_flight: 0,
            place: None,
            is_broken: false,
            is_reported: false,
            idle_since: Instant::now(),
        };
        Self { state: Mutex::new(state), meter }
    }

    /// The connection itself, if no request is in flight.
    pub(crate) fn into_connection(self) -> Option<(Metered, Arc<Meter>)> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let reader = state.reader.filter(|reader| reader.buffer.is_empty())?;
        Some((reader.io.unsplit(state.writer?), self.meter))
    }

    /// The number of requests in flight; `None` if the connection has failed or ended.
    pub(crate) fn in_flight(&self) -> Option<usize> {
        let state = self.state();
        (!state.is_broken).then_some(state.in_flight)
    }

    /// Time since which no request is in flight, if none is.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let state = self.state();
        (state.in_flight == 0).then(|| state.idle_since.elapsed())
    }

    /// Whether the server has sent nothing since its last answer, and not closed the connection. Only
    /// for a connection without requests.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut state = self.state();
        let Some(Reader { io, buffer, .. }) = &mut state.reader else { return false };
        let mut cx = Context::from_waker(Waker::noop());
        buffer.is_empty() && pin!(io.read_buf(buffer)).poll(&mut cx).is_pending()
    }

    /// Adds the first request, which brings the place of the connection.
    pub(crate) fn begin(self: &Arc<Self>, place: OwnedSemaphorePermit) -> PipelinedExchange {
        let mut state = self.state();
        state.in_flight += 1;
        state.place = Some(place);
        drop(state);
        self.exchange()
    }

    /// Adds a request to others in flight, if there are some, and not too many.
    pub(crate) fn join(self: &Arc<Self>) -> Option<PipelinedExchange> {
        let mut state = self.state();
        if state.is_broken || !(1..PIPELINE_MAX).contains(&state.in_flight) {
            return None;
        }
        state.in_flight += 1;
        drop(state);
        Some(self.exchange())
    }

    fn exchange(self: &Arc<Self>) -> PipelinedExchange {
        PipelinedExchange {
            pipeline: Arc::clone(self),
            reader: None,
            left: 0,
            is_last: false,
            is_sent: false,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in a row, with its answer.
pub(crate) struct PipelinedExchange {
    pipeline: Arc<Pipeline>,
    /// The reading half of the connection, from the turn of this request on.
    reader: Option<Reader>,
    /// Bytes of the body that have not been received.
    left: u64,
    /// Whether the connection ends after this answer.
    is_last: bool,
    /// Whether a part of the request may have been sent, and its answer was not received. Then a
    /// request that ends early ends the connection, also if it was sending other requests.
    is_sent: bool,
}

impl PipelinedExchange {
    /// Sends a request without body, and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        request: &http::Request<Full<Bytes>>,
        options: &Options,
    ) -> Result<http::response::Parts, Failure> {
        let turn = self.write(&written(request), options).await?;
        let mut reader = turn.await.map_err(|_| Failure::Row(RowFault::Overtaken))?;
        let silence = options.idle_timeout.min(SILENCE_MAX);
        reader.watchdog.begin_in_row(self.pipeline.meter.received(), silence);
        self.reader = Some(reader);
        let mut seen = 0;
        let head = poll_fn(|cx| self.poll_head(cx, options, &mut seen)).await?;
        if let Some(reader) = &mut self.reader {
            reader.watchdog.begin_body(self.pipeline.meter.received());
        }
        Ok(head)
    }

    /// Sends a request, or leaves this to a request that is sending. The reading half comes when
    /// earlier answers have been received.
    async fn write(
        &mut self,
        message: &[u8],
        options: &Options,
    ) -> Result<oneshot::Receiver<Reader>, Failure> {
        let (send, turn) = oneshot::channel();
        let writer = {
            let mut state = self.pipeline.state();
            if state.is_broken {
                return Err(Failure::Row(RowFault::Overtaken));
            }
            self.is_sent = true;
            state.unsent.extend_from_slice(message);
            state.waiting.push_back(send);
            if let Some(reader) = state.reader.take() {
                state.pass(reader);
            }
            state.writer.take()
        };
        let Some(mut writer) = writer else { return Ok(turn) };
        // Other tasks add their requests.
        tokio::task::yield_now().await;
        let pipeline = Arc::clone(&self.pipeline);
        let mut writing = pin!(async move {
            loop {
                let messages = {
                    let mut state = pipeline.state();
                    if state.unsent.is_empty() {
                        state.writer = Some(writer);
                        return Ok::<_, io::Error>(());
                    }
                    std::mem::take(&mut state.unsent)
                };
                writer.write_all(&messages).await?;
                writer.flush().await?;
            }
        });
        let mut watchdog = None;
        let written = poll_fn(|cx| match writing.as_mut().poll(cx) {
            Poll::Ready(written) => Poll::Ready(written.is_ok()),
            Poll::Pending => {
                watchdog.get_or_insert_with(Watchdog::new).poll(cx, 0, options).map(|_| false)
            }
        });
        if written.await { Ok(turn) } else { Err(self.broken_off()) }
    }

    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        options: &Options,
        seen: &mut usize,
    ) -> Poll<Result<http::response::Parts, Failure>> {
        let irregular = Failure::Row(RowFault::Irregular);
        loop {
            let Some(reader) = &mut self.reader else { return Poll::Ready(Err(irregular)) };
            let from = seen.saturating_sub(3);
            if let Some(end) = memmem::find(&reader.buffer[from..], b"\r\n\r\n") {
                let length = from + end + 4;
                let head = head_of(&reader.buffer[..length]);
                reader.buffer.advance(length);
                let Some((head, length)) = head else { return Poll::Ready(Err(irregular)) };
                self.left = length;
                self.is_last = ends_with(&head.headers);
                return Poll::Ready(Ok(head));
            }
            *seen = reader.buffer.len();
            if *seen >= options.max_header_bytes {
                return Poll::Ready(Err(irregular));
            }
            match ready!(self.poll_read(cx, options)) {
                Ok(true) => {}
                Ok(false) => return Poll::Ready(Err(self.broken_off())),
                Err(_) => return Poll::Ready(Err(irregular)),
            }
        }
    }

    /// The next bytes of the body; `None` at its end.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        options: &Options,
    ) -> Poll<Result<Option<Bytes>, Failure>> {
        loop {
            if self.left == 0 {
                return Poll::Ready(Ok(None));
            }
            let Some(reader) = &mut self.reader else {
                return Poll::Ready(Err(Failure::Closed));
            };
            let length = self.left.min(reader.buffer.len() as u64);
            if length > 0 {
                self.left -= length;
                return Poll::Ready(Ok(Some(reader.buffer.split_to(length as usize).freeze())));
            }
            if !ready!(self.poll_read(cx, options))? {
                return Poll::Ready(Err(Failure::Closed));
            }
        }
    }

    /// The failure of a connection that broke off, which is reported once.
    fn broken_off(&self) -> Failure {
        let was_reported = std::mem::replace(&mut self.pipeline.state().is_reported, true);
        Failure::Row(if was_reported { RowFault::Overtaken } else { RowFault::BrokenOff })
    }

    /// Bytes of the body that have not been received.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Reads more bytes; false at the end of the connection.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        options: &Options,
    ) -> Poll<Result<bool, Failure>> {
        let Some(Reader { io, buffer, watchdog }) = &mut self.reader else {
            return Poll::Ready(Ok(false));
        };
        if buffer.capacity() - buffer.len() < READ_BYTES / 4 {
            buffer.reserve(READ_BYTES);
        }
        let read = pin!(io.read_buf(buffer)).poll(cx);
        match read {
            Poll::Ready(read) => {
                watchdog.end_wait();
                Poll::Ready(Ok(read.is_ok_and(|read| read > 0)))
            }
            Poll::Pending if self.pipeline.meter.is_throttled() => {
                watchdog.end_wait();
                Poll::Pending
            }
            Poll::Pending => watchdog
                .poll(cx, self.pipeline.meter.received(), options)
                .map(|slow| Err(Failure::Slow(slow))),
        }
    }

    /// Ends the request after its whole answer, so that the next one gets its answer.
    pub(crate) fn finish(mut self) {
        if self.left == 0
            && !self.is_last
            && let Some(reader) = self.reader.take()
        {
            self.is_sent = false;
            self.pipeline.state().pass(reader);
        }
    }
}

impl Drop for PipelinedExchange {
    fn drop(&mut self) {
        let mut state = self.pipeline.state();
        state.in_flight -= 1;
        // The next bytes are the answer to this request, which nobody reads.
        if self.is_sent {
            state.break_off();
        }
        if state.in_flight == 0 {
            state.place = None;
            state.idle_since = Instant::now();
        }
    }
}

/// A request without body, as sent.
fn written(request: &http::Request<Full<Bytes>>) -> Vec<u8> {
    let mut message = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri()).into_bytes();
    for (name, value) in request.headers() {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            message.extend_from_slice(part);
        }
    }
    message.extend_from_slice(b"\r\n");
    message
}

/// The head of a regular answer, and the length of its body: HTTP/1.1, with exactly one length.
fn head_of(text: &[u8]) -> Option<(http::response::Parts, u64)> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(length) = parsed.parse(text).ok()? else { return None };
    let status = StatusCode::from_u16(parsed.code?).ok()?;
    let has_body = !status.is_informational()
        && status != StatusCode::NO_CONTENT
        && status != StatusCode::NOT_MODIFIED;
    if length != text.len() || parsed.version != Some(1) || !has_body {
        return None;
    }
    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    for field in parsed.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let (length, None) = (lengths.next()?.to_str().ok()?, lengths.next()) else { return None };
    if headers.contains_key(TRANSFER_ENCODING) || !length.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let length = length.parse().ok()?;
    let mut head = http::Response::new(()).into_parts().0;
    (head.status, head.headers) = (status, headers);
    Some((head, length))
}

/// Whether the connection ends after an answer of HTTP/1.1 with these headers.
pub(crate) fn ends_with(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|it| it.trim().eq_ignore_ascii_case("close"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_with_one_length_are_regular() {
        let length = |text: &str| {
            head_of(text.as_bytes()).map(|(head, length)| (head.status.as_u16(), length))
        };
        assert_eq!(
            length("HTTP/1.1 200 OK\r\nContent-Length: 12\r\nA: b\r\n\r\n"),
            Some((200, 12))
        );
        assert_eq!(length("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"), Some((404, 0)));
        for irregular in [
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nA:\r\n folded\r\n\r\n",
            "no HTTP\r\n\r\n",
        ] {
            assert_eq!(length(irregular), None, "{irregular:?}");
        }
    }

    #[test]
    fn an_announced_end_of_the_connection_is_noticed() {
        for (value, ends) in [("close", true), ("keep-alive", false), ("x, Close", true)] {
            let headers = HeaderMap::from_iter([(CONNECTION, HeaderValue::from_static(value))]);
            assert_eq!(ends_with(&headers), ends, "{value}");
        }
    }
}
