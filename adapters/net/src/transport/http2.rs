//! A connection of HTTP/2 [rfc9113], which the requests of a client to a server share.
//!
//! No request owns the connection, so a separate task drives it. The task ends when the last
//! request and the client's pool have dropped the connection.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::settings::options::Options;
use crate::transport::connection::{Failure, Meter, Metered, Stream};
use crate::transport::shared::Shared;
use crate::transport::watchdog::{TooSlow, Watchdog};

/// Most bytes of a response that a server may send before they are read: 160 Mbit/s at a round trip of
/// 200 ms.
const STREAM_WINDOW_MAX: u32 = 4 << 20;
/// Most bytes of all responses on a connection that a server may send before they are read.
const CONNECTION_WINDOW_MAX: u32 = 8 << 20;

/// Longest wait of a request while the server answers other requests on the connection, as a
/// multiple of `idle_timeout`.
const MAX_OVERTAKEN: u32 = 10;

/// A connection of HTTP/2.
pub(crate) struct Http2Connection {
    sender: http2::SendRequest<Full<Bytes>>,
    meter: Arc<Meter>,
    /// Bytes of bodies that requests have received, and one for each head. Other frames are not
    /// counted, so that a server cannot prevent time limits by sending them.
    answered: AtomicU64,
    /// Time since which the connection is unused, if no request uses it.
    idle_since: Mutex<Instant>,
}

impl Http2Connection {
    /// Starts the connection, and the task that drives it.
    pub(crate) async fn new(stream: Stream, shared: &Shared) -> Result<Self, hyper::Error> {
        let meter = Arc::new(Meter::default());
        let io = TokioIo::new(Metered::new(stream, Arc::clone(&meter), shared));
        let header_bytes = u32::try_from(shared.options.max_header_bytes).unwrap_or(u32::MAX);
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW_MAX)
            .initial_connection_window_size(CONNECTION_WINDOW_MAX)
            .max_header_list_size(header_bytes)
            .handshake(io)
            .await?;
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "a connection of HTTP/2 ended");
            }
        });
        let (answered, idle_since) = (AtomicU64::default(), Mutex::new(Instant::now()));
        Ok(Self { sender, meter, answered, idle_since })
    }

    /// Whether the connection can be used as far as is known; sending may still fail.
    pub(crate) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Records that a request has ended.
    pub(crate) fn rest(&self) {
        *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// The time since the end of the last request.
    pub(crate) fn idle(&self) -> Duration {
        self.idle_since.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// A request on a connection of HTTP/2.
pub(crate) struct Http2Exchange {
    connection: Arc<Http2Connection>,
    watchdog: Watchdog,
    /// Time since which this request waits for a part of its answer.
    waits_since: Option<Instant>,
}

impl Http2Exchange {
    pub(crate) fn new(connection: Arc<Http2Connection>) -> Self {
        Self { connection, watchdog: Watchdog::new(), waits_since: None }
    }

    pub(crate) fn connection(&self) -> &Arc<Http2Connection> {
        &self.connection
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
        options: &Options,
    ) -> Result<http::Response<Incoming>, Failure> {
        self.watchdog.begin_among_others(self.connection.answered.load(Relaxed));
        let mut sender = self.connection.sender.clone();
        let mut answer = pin!(sender.send_request(request));
        let answered = poll_fn(|cx| self.poll_with(cx, options, |cx| answer.as_mut().poll(cx)));
        let answer = answered.await?.map_err(Failure::Http)?;
        self.received(1);
        self.watchdog.begin_body(self.connection.answered.load(Relaxed));
        Ok(answer)
    }

    /// Records that a part of the answer has arrived.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.connection.answered.fetch_add(bytes as u64, Relaxed);
        self.waits_since = None;
    }

    /// Polls `wanted` until it is ready or the server is too slow.
    ///
    /// The answers to all requests on the connection count, since the server decides in which order
    /// it answers; but no request waits forever while others are answered.
    pub(crate) fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        options: &Options,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Failure>> {
        if let Poll::Ready(value) = wanted(cx) {
            self.watchdog.end_wait();
            return Poll::Ready(Ok(value));
        }
        if self.connection.meter.is_throttled() {
            // The timer is set all the same, since nothing else wakes this task if the server is
            // silent afterwards.
            self.watchdog.end_wait();
            self.waits_since = None;
        }
        let waits_since = *self.waits_since.get_or_insert_with(Instant::now);
        if waits_since.elapsed() >= options.idle_timeout.saturating_mul(MAX_OVERTAKEN) {
            return Poll::Ready(Err(Failure::Slow(TooSlow::Idle)));
        }
        let answered = self.connection.answered.load(Relaxed);
        self.watchdog.poll(cx, answered, options).map(|slow| Err(Failure::Slow(slow)))
    }
}

/// The meaning of an error of HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    /// The request was not processed [rfc9113 §8.7].
    Refused,
    /// The server answers this request by HTTP/1.1 only [rfc9113 §7].
    WantsHttp1,
    /// The client sends too much.
    TooMuch,
    /// The server violates the protocol, or reports that the client does.
    Protocol,
    /// The response ended early.
    Ended,
}

/// The cause of an error that has this type.
fn cause_of<E: std::error::Error + 'static>(error: &hyper::Error) -> Option<&E> {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(found) = inner.downcast_ref() {
            return Some(found);
        }
        cause = inner.source();
    }
    None
}

/// Whether the connection ended, and not by an error in HTTP/2.
pub(crate) fn has_broken_off(error: &hyper::Error) -> bool {
    error.is_canceled()
        || error.is_closed()
        || cause_of::<io::Error>(error).is_some()
        || cause_of::<h2::Error>(error).is_some_and(h2::Error::is_io)
}

/// Whether an error ends the connection, and not only a request.
pub(crate) fn ends_connection(error: &hyper::Error) -> bool {
    cause_of::<h2::Error>(error).is_none_or(|cause| !cause.is_reset())
}

/// The meaning of an error, if it is an error of HTTP/2.
pub(crate) fn reset_of(error: &hyper::Error) -> Option<Reset> {
    let h2 = cause_of::<h2::Error>(error)?;
    Some(match h2.reason()? {
        h2::Reason::REFUSED_STREAM => Reset::Refused,
        // A connection that ends regularly names the last stream that it processes.
        h2::Reason::NO_ERROR if h2.is_go_away() => Reset::Refused,
        h2::Reason::HTTP_1_1_REQUIRED => Reset::WantsHttp1,
        // The client refuses endless headers with the same reason.
        h2::Reason::ENHANCE_YOUR_CALM if h2.is_remote() => Reset::TooMuch,
        // The end of a body that is shorter than its length.
        h2::Reason::PROTOCOL_ERROR if h2.is_reset() && h2.is_library() => Reset::Ended,
        h2::Reason::NO_ERROR
        | h2::Reason::CANCEL
        | h2::Reason::INTERNAL_ERROR
        | h2::Reason::STREAM_CLOSED => Reset::Ended,
        _ => Reset::Protocol,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_fill_a_long_line() {
        // 100 Mbit/s with a round trip of 300 ms.
        const LINE: u32 = 100_000_000 / 8 / 1_000 * 300;
        const { assert!(STREAM_WINDOW_MAX > LINE && CONNECTION_WINDOW_MAX >= 2 * STREAM_WINDOW_MAX) };
    }
}
