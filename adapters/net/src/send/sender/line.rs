//! A connection that is used for one exchange after the other: a request is sent, its response is
//! received.
//!
//! The request is written to the socket without a copy, and the response is read by `answer.rs`;
//! between exchanges a connection does not have buffers. One time limit applies to the whole
//! exchange.

use std::future::{Future as _, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use http::StatusCode;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::answer::{Head, Input, Malformed};
use crate::address::error::{Error, ErrorKind};
use crate::transport::connection::Stream;

/// Failures of a connection.
#[derive(Debug)]
pub(super) enum Failure {
    /// The time limit was exceeded.
    Late,
    Closed,
    Broken(io::Error),
    Malformed(Malformed),
    /// The response has more bytes than allowed.
    TooMuch,
}

/// A connection.
pub(super) struct Line {
    stream: Stream,
    timer: Option<Pin<Box<Sleep>>>,
    armed_until: Option<Instant>,
    /// Bytes received since the start of the current request, and the limit for them.
    received: u64,
    most: u64,
    /// Time since which the connection is unused.
    pub(super) idle_since: Instant,
}

/// A request while it is sent.
struct Request<'a> {
    head: &'a [u8],
    body: &'a [u8],
    /// Whether all bytes were passed to the kernel, or writing failed.
    done: bool,
    failed: Option<io::Error>,
}

impl Line {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            timer: None,
            armed_until: None,
            received: 0,
            most: 0,
            idle_since: Instant::now(),
        }
    }

    /// Bytes received since the start of the current request.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Whether an unused connection is still open and did not receive bytes. Usually does not need
    /// a system call.
    pub(super) fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        match &mut self.stream {
            Stream::Plain(stream) => stream
                .try_read(&mut byte)
                .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock),
            Stream::Tls(stream) => {
                let mut cx = Context::from_waker(Waker::noop());
                Pin::new(&mut **stream)
                    .poll_read(&mut cx, &mut ReadBuf::new(&mut byte))
                    .is_pending()
            }
        }
    }

    /// Sends a request and waits for the head of its response, within `most` bytes.
    pub(super) async fn ask(
        &mut self,
        (head, body): (&[u8], &[u8]),
        input: &mut Input,
        wanted: impl Fn(StatusCode) -> bool,
        deadline: Instant,
        most: u64,
    ) -> Result<Head, Failure> {
        (self.received, self.most) = (0, most);
        let mut request = Request { head, body, done: false, failed: None };
        let mut answer =
            poll_fn(|cx| self.poll_ask(cx, &mut request, input, &wanted, deadline)).await?;
        // The server answered before it had the whole request.
        answer.keeps &= request.done && request.failed.is_none();
        Ok(answer)
    }

    fn poll_ask(
        &mut self,
        cx: &mut Context<'_>,
        request: &mut Request<'_>,
        input: &mut Input,
        wanted: &impl Fn(StatusCode) -> bool,
        deadline: Instant,
    ) -> Poll<Result<Head, Failure>> {
        if !request.done
            && let Poll::Ready(sent) = self.poll_send(cx, request)
        {
            request.done = true;
            // The server may have answered nevertheless, with the reason why it does not want the
            // rest.
            request.failed = sent.err();
        }
        loop {
            match ready!(self.poll_receive(cx, input, deadline)) {
                Ok(0) => {
                    return Poll::Ready(Err(request
                        .failed
                        .take()
                        .map_or(Failure::Closed, Failure::Broken)));
                }
                Ok(_) => {}
                Err(Failure::Broken(error)) => {
                    return Poll::Ready(Err(Failure::Broken(
                        request.failed.take().unwrap_or(error),
                    )));
                }
                Err(failure) => return Poll::Ready(Err(failure)),
            }
            if let Some(head) = input.head(wanted).map_err(Failure::Malformed)? {
                return Poll::Ready(Ok(head));
            }
        }
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        request: &mut Request<'_>,
    ) -> Poll<io::Result<()>> {
        while !request.head.is_empty() || !request.body.is_empty() {
            let parts = [IoSlice::new(request.head), IoSlice::new(request.body)];
            let written = ready!(match &mut self.stream {
                Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, &parts),
                Stream::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(cx, &parts),
            })?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_head = written.min(request.head.len());
            request.head = &request.head[of_head..];
            request.body = &request.body[written - of_head..];
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Waits for more bytes of a response; 0 at the end of the connection.
    pub(super) async fn receive(
        &mut self,
        input: &mut Input,
        deadline: Instant,
    ) -> Result<usize, Failure> {
        poll_fn(|cx| self.poll_receive(cx, input, deadline)).await
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut Input,
        deadline: Instant,
    ) -> Poll<Result<usize, Failure>> {
        let mut room = ReadBuf::new(input.room());
        match Pin::new(&mut self.stream).poll_read(cx, &mut room) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(Failure::Broken(error))),
            Poll::Pending => return self.poll_deadline(cx, deadline).map(|()| Err(Failure::Late)),
        }
        let count = room.filled().len();
        input.received(count);
        self.received += count as u64;
        Poll::Ready(if self.received > self.most { Err(Failure::TooMuch) } else { Ok(count) })
    }

    /// Sets the timer only if it would fire too late: once per time limit, not once per request. If
    /// it fires early, the deadline is only checked again.
    fn poll_deadline(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        loop {
            if self.armed_until.is_none_or(|armed| armed > deadline) {
                timer.as_mut().reset(deadline);
                self.armed_until = Some(deadline);
            }
            ready!(timer.as_mut().poll(cx));
            self.armed_until = None;
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
        }
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl Failure {
    /// Whether a reused connection had been closed earlier: it ended before the first byte of a
    /// response. `received` is the number of bytes received.
    pub(super) fn was_before_any_answer(&self, received: u64) -> bool {
        received == 0 && matches!(self, Self::Closed | Self::Broken(_))
    }

    pub(super) fn into_error(self) -> Error {
        let error = |kind, message: &str| Error::new(kind, "", message);
        match self {
            Self::Late => error(ErrorKind::Timeout, "nothing came from the server for too long"),
            Self::Closed => {
                error(ErrorKind::Truncated, "the server closed the connection too early")
            }
            Self::TooMuch => error(
                ErrorKind::Truncated,
                "the server sent more than may come before the answer's end",
            ),
            Self::Malformed(Malformed::HeadTooLarge) => {
                error(ErrorKind::Header, "the answer's headers are too large")
            }
            Self::Malformed(Malformed::Status) => {
                error(ErrorKind::Status, "the answer has no valid status")
            }
            Self::Malformed(Malformed::Head) => {
                error(ErrorKind::Protocol, "the answer is not valid HTTP/1.1")
            }
            Self::Malformed(Malformed::Body) => {
                error(ErrorKind::Protocol, "the answer's body is not valid HTTP/1.1")
            }
            Self::Broken(cause) => {
                let is_tls = cause
                    .get_ref()
                    .is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>);
                let error = if is_tls {
                    error(ErrorKind::Tls, "TLS failed during the answer")
                } else {
                    error(ErrorKind::Truncated, "the answer ended before its announced end")
                };
                error.with_cause(cause)
            }
        }
    }
}
