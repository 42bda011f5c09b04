//! How does one kept connection take a request and give its answer?
//!
//! As in `connection.rs`, whoever waits for the answer polls the connection. What differs: one limit of time for the
//! whole exchange instead of rules of speed, one of bytes for all that comes in, and bodies that are handed to the
//! kernel from where they are.

use std::future::{Future as _, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep};

use crate::connection::{Failure, Stream};
use crate::watchdog::TooSlow;

/// Bytes of an answer besides head and body: interim answers, chunk sizes, trailers.
const FRAMING: u64 = 16 << 10;
/// The smallest buffer hyper accepts.
const MIN_BUFFER: usize = 8 << 10;

/// What came in, and how much may.
#[derive(Default)]
struct Meter {
    received: AtomicU64,
    most: AtomicU64,
}

/// A connection; dropping a request closes it.
pub(super) struct Line {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: http1::Connection<TokioIo<Counted>, Full<Bytes>>,
    meter: Arc<Meter>,
    timer: Option<Pin<Box<Sleep>>>,
    armed_until: Option<Instant>,
    closed: bool,
    /// Bytes received before the current request.
    base: u64,
    /// Since when it is unused.
    pub(super) idle_since: Instant,
}

struct Counted {
    stream: Stream,
    meter: Arc<Meter>,
}

impl Line {
    pub(super) async fn new(stream: Stream, max_head_bytes: usize) -> Result<Self, hyper::Error> {
        let meter = Arc::new(Meter::default());
        let io = TokioIo::new(Counted { stream, meter: Arc::clone(&meter) });
        let buffer = max_head_bytes.max(MIN_BUFFER);
        let (sender, driver) =
            http1::Builder::new().max_buf_size(buffer).max_header_size(max_head_bytes).handshake(io).await?;
        Ok(Self {
            sender,
            driver,
            meter,
            timer: None,
            armed_until: None,
            closed: false,
            base: 0,
            idle_since: Instant::now(),
        })
    }

    /// Bytes received since the current request began.
    pub(super) fn received(&self) -> u64 {
        self.meter.received.load(Relaxed) - self.base
    }

    /// Takes in what has come meanwhile; then tells whether a request can be sent. Needs no system call when nothing
    /// has come.
    pub(super) fn settle(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        self.drive(&mut cx).is_none() && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
        deadline: Instant,
        most: u64,
    ) -> Result<http::Response<Incoming>, Failure> {
        self.base = self.meter.received.load(Relaxed);
        self.meter.most.store(self.base.saturating_add(most).saturating_add(FRAMING), Relaxed);
        // Unconstrained, because a task out of budget would be woken through the waker that wakes nobody.
        let mut answer = pin!(unconstrained(self.sender.send_request(request)));
        let mut queued = true;
        let answered = poll_fn(|cx| {
            self.poll_with(cx, deadline, |cx| {
                // The request is still in the queue, so there is nothing to look for before the first drive.
                if std::mem::take(&mut queued) { Poll::Pending } else { answer.as_mut().poll(cx) }
            })
        });
        answered.await?.map_err(Failure::Http)
    }

    /// The next piece of a body; `None` at its end.
    pub(super) async fn piece(&mut self, body: &mut Incoming, deadline: Instant) -> Result<Option<Bytes>, Failure> {
        loop {
            let mut body = Pin::new(&mut *body);
            let frame = poll_fn(|cx| self.poll_with(cx, deadline, |cx| body.as_mut().poll_frame(cx))).await?;
            match frame {
                None => return Ok(None),
                Some(Err(e)) => return Err(Failure::Http(e)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Polls `wanted`, moving the connection forward until it is ready, broken or out of time. What is wanted comes
    /// only from driving the connection, so it gets a waker that wakes nobody.
    fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Instant,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Failure>> {
        let mut silent = Context::from_waker(Waker::noop());
        if let Poll::Ready(value) = wanted(&mut silent) {
            return Poll::Ready(Ok(value));
        }
        let broken = self.drive(cx);
        if let Poll::Ready(value) = wanted(&mut silent) {
            return Poll::Ready(Ok(value));
        }
        match broken {
            Some(failure) => Poll::Ready(Err(failure)),
            None => self.poll_deadline(cx, deadline).map(|()| Err(Failure::Slow(TooSlow::Idle))),
        }
    }

    /// Moves the connection forward; a failure means it is closed.
    fn drive(&mut self, cx: &mut Context<'_>) -> Option<Failure> {
        if self.closed {
            return Some(Failure::Closed);
        }
        match Pin::new(&mut self.driver).poll(cx) {
            Poll::Pending => None,
            Poll::Ready(result) => {
                self.closed = true;
                Some(result.err().map_or(Failure::Closed, Failure::Http))
            }
        }
    }

    /// Sets the timer only if it would ring too late: once per limit of time, not once per request. An early ring
    /// just makes us look again.
    fn poll_deadline(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        loop {
            if self.armed_until.is_none_or(|armed| armed > deadline) {
                timer.as_mut().reset(deadline);
                self.armed_until = Some(deadline);
            }
            std::task::ready!(timer.as_mut().poll(cx));
            self.armed_until = None;
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
        }
    }
}

impl AsyncRead for Counted {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let result = Pin::new(&mut this.stream).poll_read(cx, buf);
        let read = buf.filled().len() - before;
        if read > 0 {
            // One writer only: the task that drives this connection.
            let received = this.meter.received.load(Relaxed) + read as u64;
            this.meter.received.store(received, Relaxed);
            if received > this.meter.most.load(Relaxed) {
                return Poll::Ready(Err(io::Error::other("more came than may")));
            }
        }
        result
    }
}

impl AsyncWrite for Counted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
