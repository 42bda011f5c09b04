//! Limits for a client's connection: it must read responses in time and, in HTTP/1.1, end its lines
//! with CRLF.

use crate::connection::lines::Lines;
use abreast_net::{ServerStream, Writes};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A client's connection, which fails if nothing can be written for `stall`.
pub(crate) struct ClientStream {
    stream: ServerStream,
    stall: Duration,
    /// The timer, which runs only while the client does not read.
    stalled: Option<Pin<Box<Sleep>>>,
    /// The check of lines; `None` for HTTP/2.
    lines: Option<Lines>,
    writes: Writes,
}

impl ClientStream {
    /// A connection of HTTP/1.1.
    pub(crate) fn http1(stream: ServerStream, stall: Duration, writes: Writes) -> Self {
        Self { stream, stall, stalled: None, lines: Some(Lines::default()), writes }
    }

    /// A connection of HTTP/2.
    pub(crate) fn http2(stream: ServerStream, stall: Duration, writes: Writes) -> Self {
        Self { stream, stall, stalled: None, lines: None, writes }
    }

    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        self.writes.blocked();
        let stall = self.stall;
        let timer = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall)));
        ready!(timer.as_mut().poll(cx));
        // The kernel then also drops its buffered data for this client.
        let _ = self.stream.tcp().set_zero_linger();
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read its answer",
        )))
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        if let Some(lines) = &mut this.lines {
            lines.filter(&mut buffer.filled_mut()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.watch(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // This is called after all preceding bytes were written.
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_flush(cx))?;
        this.writes.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
