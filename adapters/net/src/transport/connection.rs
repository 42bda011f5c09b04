//! Driving one HTTP/1.1 connection.
//!
//! The task that waits for the response polls the connection. A connection without a separate task
//! saves a task switch per request, and is closed when the request is dropped.

use std::future::Future as _;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::coop::unconstrained;
use tokio::time::Sleep;
use tokio_rustls::client::TlsStream;

use crate::limits::bandwidth::{Allowance, Throttle};
use crate::settings::options::Options;
use crate::transport::shared::{RowFault, Shared, Totals};
use crate::transport::tls::ALPN_HTTP2;
use crate::transport::watchdog::{TooSlow, Watchdog};

/// Most interim (1xx) responses before the real one.
const MAX_INTERIM: u32 = 16;
/// Largest read buffer of a connection, unless the header limit is higher.
const MAX_BUFFER: usize = 128 << 10;
/// The smallest buffer that hyper accepts.
const MIN_BUFFER: usize = 8 << 10;
/// Pause before each read, and bytes of a read, when a run has received all bytes that it may.
const SPENT_PAUSE: Duration = Duration::from_secs(1);
const SPENT_PIECE: u64 = 4 << 10;

/// Bytes received on a connection.
#[derive(Default)]
pub(crate) struct Meter {
    bytes: AtomicU64,
    interim: AtomicU32,
    /// Whether the connection waits because of our limit of bytes per second, not for the server.
    throttled: AtomicBool,
    /// Whether the first bytes were TLS, although the connection is plain.
    tls: AtomicBool,
}

impl Meter {
    /// Bytes received since the connection was made.
    pub(crate) fn received(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Whether the connection waits because of our limit of bytes per second.
    pub(crate) fn is_throttled(&self) -> bool {
        self.throttled.load(Relaxed)
    }
}

pub(crate) enum Stream {
    Plain(TcpStream),
    /// TLS over TCP, or over TLS to a proxy.
    Tls(Box<TlsStream<Stream>>),
}

impl Stream {
    /// Whether client and server have agreed on HTTP/2 in the TLS handshake.
    pub(crate) fn is_http2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(ALPN_HTTP2),
        }
    }
}

/// A stream that counts received bytes, and fails after too many interim responses.
pub(crate) struct Metered {
    stream: Stream,
    meter: Arc<Meter>,
    /// Counters for all connections together.
    totals: Totals,
    throttle: Option<Arc<Throttle>>,
    pause: Option<Pin<Box<Sleep>>>,
}

/// Failures of a connection.
#[derive(Debug)]
pub(crate) enum Failure {
    Slow(TooSlow),
    Interim,
    Http(hyper::Error),
    Closed,
    /// A request in a row got no regular answer.
    Row(RowFault),
}

impl Failure {
    /// Whether a reused connection had been closed earlier: the request was never sent, or the
    /// server closed the connection before the first byte of a response.
    pub(crate) fn was_before_any_answer(&self, received: u64) -> bool {
        match self {
            Self::Http(e) => e.is_canceled() || (received == 0 && !e.is_timeout()),
            Self::Closed => received == 0,
            Self::Slow(_) | Self::Interim | Self::Row(_) => false,
        }
    }
}

pub(crate) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: http1::Connection<TokioIo<Metered>, Full<Bytes>>,
    meter: Arc<Meter>,
    watchdog: Watchdog,
    closed: bool,
    /// Whether the server has answered a request so that the next answer can follow.
    is_regular: bool,
    /// Bytes received before the current request.
    base: u64,
    /// Time since which the connection is unused.
    pub(crate) idle_since: Instant,
}

impl Connection {
    pub(crate) async fn new(stream: Stream, shared: &Shared) -> Result<Self, hyper::Error> {
        let meter = Arc::new(Meter::default());
        Self::on(Metered::new(stream, meter.clone(), shared), meter, &shared.options).await
    }

    /// A connection on a stream, whose bytes the meter counts.
    pub(crate) async fn on(
        io: Metered,
        meter: Arc<Meter>,
        options: &Options,
    ) -> Result<Self, hyper::Error> {
        let header_bytes = options.max_header_bytes.max(MIN_BUFFER);
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(header_bytes.max(MAX_BUFFER))
            .max_header_size(header_bytes)
            // Line breaks within a field value become spaces [rfc9112 §5.2].
            .allow_obsolete_multiline_headers_in_responses(true)
            .handshake(TokioIo::new(io))
            .await?;
        Ok(Self {
            sender,
            driver,
            meter,
            watchdog: Watchdog::new(),
            closed: false,
            is_regular: false,
            base: 0,
            idle_since: Instant::now(),
        })
    }

    /// Records that an answer had a length, and did not end the connection.
    pub(crate) fn was_answered_regularly(&mut self) {
        self.is_regular = true;
    }

    /// Whether requests can be sent on the connection before earlier ones are answered.
    pub(crate) fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// The stream with its meter, unless bytes have come that nobody asked for.
    pub(crate) fn into_stream(self) -> Option<(Metered, Arc<Meter>)> {
        let parts = self.driver.into_parts();
        parts.read_buf.is_empty().then(|| (parts.io.into_inner(), self.meter))
    }

    /// Bytes received since the start of the current request.
    pub(crate) fn received(&self) -> u64 {
        self.meter.bytes.load(Relaxed) - self.base
    }

    /// Whether a plain request was answered in TLS.
    pub(crate) fn is_answered_in_tls(&self) -> bool {
        self.meter.tls.load(Relaxed)
    }

    /// Whether the connection can be used as far as is known; sending may still fail.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed && self.sender.is_ready()
    }

    /// Receives the end of a response; then returns whether another request can be sent.
    pub(crate) fn settle(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        self.drive(&mut cx).is_none() && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        mut request: http::Request<Full<Bytes>>,
        options: &Options,
    ) -> Result<http::Response<Incoming>, Failure> {
        self.base = self.meter.bytes.load(Relaxed);
        self.meter.interim.store(0, Relaxed);
        self.watchdog.begin(self.base);
        let meter = self.meter.clone();
        hyper::ext::on_informational(&mut request, move |_| {
            meter.interim.fetch_add(1, Relaxed);
        });
        // Unconstrained: a task without budget would register its waker, which has no effect here.
        let mut answer = pin!(unconstrained(self.sender.send_request(request)));
        // The request is still in the queue: do not read before the first poll.
        let mut queued = true;
        let answered = poll_fn(|cx| {
            self.poll_with(cx, options, |cx| {
                if std::mem::take(&mut queued) { Poll::Pending } else { answer.as_mut().poll(cx) }
            })
        });
        answered.await?.map_err(|e| {
            if self.meter.interim.load(Relaxed) > MAX_INTERIM {
                Failure::Interim
            } else {
                Failure::Http(e)
            }
        })
    }

    /// Polls `wanted`, moving the connection forward until it is ready, broken or too slow.
    ///
    /// Only the connection, which this function polls, makes `wanted` ready. Therefore `wanted`
    /// gets a waker without effect; the real waker would wake this task for progress that it sees
    /// anyway.
    pub(crate) fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        options: &Options,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Failure>> {
        let mut silent = Context::from_waker(Waker::noop());
        if let Poll::Ready(value) = wanted(&mut silent) {
            self.watchdog.end_wait();
            return Poll::Ready(Ok(value));
        }
        let broken = self.drive(cx);
        if let Poll::Ready(value) = wanted(&mut silent) {
            self.watchdog.end_wait();
            return Poll::Ready(Ok(value));
        }
        if let Some(failure) = broken {
            return Poll::Ready(Err(failure));
        }
        if self.meter.throttled.load(Relaxed) {
            self.watchdog.end_wait();
            return Poll::Pending;
        }
        let received = self.meter.bytes.load(Relaxed);
        self.watchdog.poll(cx, received, options).map(|slow| Err(Failure::Slow(slow)))
    }

    /// Polls the connection; after a failure it is closed.
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
}

impl Metered {
    pub(crate) fn new(stream: Stream, meter: Arc<Meter>, shared: &Shared) -> Self {
        let (throttle, totals) = (shared.throttle(), shared.totals());
        Self { stream, meter, totals, throttle, pause: None }
    }

    /// Reads at most the bytes that the limits allow.
    fn poll_read_limited(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let was_paused = if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.as_mut().poll(cx));
            self.pause = None;
            self.meter.throttled.store(false, Relaxed);
            true
        } else {
            false
        };
        let most = loop {
            let wait = match (self.totals.piece(), self.throttle.as_ref().map(|t| t.allowance())) {
                (None, None | Some(Allowance::Unlimited)) => {
                    return Pin::new(&mut self.stream).poll_read(cx, buf);
                }
                // After the limit of bytes, a request that is not cancelled continues slowly.
                (Some(0), _) if !was_paused => SPENT_PAUSE,
                (_, Some(Allowance::Wait(pause))) => pause,
                (piece, throttled) => {
                    let due = match throttled {
                        Some(Allowance::Bytes(due)) => due as u64,
                        _ => u64::MAX,
                    };
                    let most = due.min(piece.map_or(u64::MAX, |piece| piece.max(SPENT_PIECE)));
                    break usize::try_from(most).unwrap_or(usize::MAX).min(buf.remaining());
                }
            };
            self.meter.throttled.store(true, Relaxed);
            let pause = self.pause.insert(Box::pin(tokio::time::sleep(wait)));
            std::task::ready!(pause.as_mut().poll(cx));
            self.pause = None;
            self.meter.throttled.store(false, Relaxed);
        };
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
        std::task::ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buf.advance(read);
        if let Some(throttle) = &self.throttle {
            throttle.spend(read);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.meter.interim.load(Relaxed) > MAX_INTERIM {
            return Poll::Ready(Err(io::Error::other(format!(
                "more than {MAX_INTERIM} interim responses"
            ))));
        }
        let before = buf.filled().len();
        let result = if this.throttle.is_some() || this.totals.piece().is_some() {
            this.poll_read_limited(cx, buf)
        } else {
            Pin::new(&mut this.stream).poll_read(cx, buf)
        };
        let read = buf.filled().len() - before;
        if read > 0 {
            // The first byte is that of a TLS alert or handshake record.
            if this.meter.bytes.load(Relaxed) == 0
                && matches!(buf.filled()[before..], [0x15 | 0x16, 0x03, ..])
                && matches!(this.stream, Stream::Plain(_))
            {
                this.meter.tls.store(true, Relaxed);
            }
            // Only the task that drives this connection writes the counter.
            this.meter.bytes.store(this.meter.bytes.load(Relaxed) + read as u64, Relaxed);
            this.totals.add(read as u64);
        }
        result
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
