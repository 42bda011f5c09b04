//! The connection under a stream. Received bytes count against a limit, and whole stanzas can be
//! written without the XML writer of the stream.

use crate::depth::Depth;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Bytes read at once.
const BUFFER: usize = 16 << 10;
/// Deepest nesting of elements, including the stream: the parser builds and drops elements
/// recursively.
const DEPTH_MAX: usize = 64;
/// Most elements of a stanza, each of which costs far more memory than its bytes.
const ELEMENTS_MAX: usize = 100_000;

/// The connection.
#[derive(Debug)]
pub(crate) enum Connection {
    /// Not encrypted: before TLS, and for servers on this machine.
    Plain(TcpStream),
    /// Encrypted with TLS.
    Secure(Box<TlsStream<TcpStream>>),
}

/// The reading end, which the stream owns. The stream writes its negotiation through it too.
#[derive(Debug)]
pub(crate) struct Wire {
    shared: Shared,
    depth: Depth,
    buffer: Box<[u8]>,
    read: usize,
    filled: usize,
}

/// The end to which whole stanzas are written, and the limit of received bytes.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    connection: Arc<Mutex<Connection>>,
    left: Arc<AtomicUsize>,
    limit: usize,
    elements: Arc<AtomicUsize>,
}

impl Wire {
    pub(crate) fn new(connection: Connection, limit: usize) -> Self {
        let connection = Arc::new(Mutex::new(connection));
        let left = Arc::new(AtomicUsize::new(limit));
        let shared = Shared { connection, left, limit, elements: Arc::default() };
        let depth = Depth::default();
        Self { shared, depth, buffer: vec![0; BUFFER].into(), read: 0, filled: 0 }
    }

    pub(crate) fn shared(&self) -> Shared {
        self.shared.clone()
    }

    /// Checks received bytes before the parser builds elements from them.
    fn check(&mut self, filled: usize) -> io::Result<()> {
        let begun = self.depth.feed(&self.buffer[..filled]);
        let elements = self.shared.elements.fetch_add(begun, Relaxed) + begun;
        let refused = |message: String| Err(io::Error::new(io::ErrorKind::InvalidData, message));
        if self.depth.deepest() > DEPTH_MAX {
            return refused(format!("a stanza is nested deeper than {DEPTH_MAX} elements"));
        }
        if elements > ELEMENTS_MAX {
            return refused(format!("a stanza has more than {ELEMENTS_MAX} elements"));
        }
        Ok(())
    }

    /// The connection, if all received bytes were processed and nothing else writes.
    pub(crate) fn into_connection(self) -> Option<Connection> {
        if self.read < self.filled {
            return None;
        }
        let connection = Arc::try_unwrap(self.shared.connection).ok()?;
        Some(connection.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    /// Resets the limits after a complete stanza.
    pub(crate) fn renew(&self) {
        self.left.store(self.limit, Relaxed);
        self.elements.store(0, Relaxed);
    }

    /// Writes a whole stanza.
    pub(crate) async fn write(&mut self, stanza: &[u8]) -> io::Result<()> {
        self.write_all(stanza).await?;
        self.flush().await
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, work: impl FnOnce(Pin<&mut dyn Io>) -> T) -> T {
        match &mut *self.lock() {
            Connection::Plain(stream) => work(Pin::new(stream)),
            Connection::Secure(stream) => work(Pin::new(&mut **stream)),
        }
    }
}

trait Io: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Io for T {}

impl AsyncWrite for Shared {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.with(|io| io.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|io| io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|io| io.poll_shutdown(cx))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.shared).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.shared).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.shared).poll_shutdown(cx)
    }
}

impl AsyncBufRead for Wire {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        if this.read >= this.filled {
            if this.shared.left.load(Relaxed) == 0 {
                let message = format!("a stanza is larger than {} bytes", this.shared.limit);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::FileTooLarge, message)));
            }
            let mut buffer = ReadBuf::new(&mut this.buffer);
            ready!(this.shared.with(|io| io.poll_read(cx, &mut buffer)))?;
            let filled = buffer.filled().len();
            (this.read, this.filled) = (0, 0);
            this.check(filled)?;
            this.filled = filled;
        }
        Poll::Ready(Ok(&this.buffer[this.read..this.filled]))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        let this = self.get_mut();
        this.read = (this.read + amount).min(this.filled);
        let left = this.shared.left.load(Relaxed);
        this.shared.left.store(left.saturating_sub(amount), Relaxed);
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let available = ready!(self.as_mut().poll_fill_buf(cx))?;
        let amount = available.len().min(out.remaining());
        out.put_slice(&available[..amount]);
        self.consume(amount);
        Poll::Ready(Ok(()))
    }
}
