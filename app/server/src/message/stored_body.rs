//! Response bodies from a stored content that is not on this machine.

use abreast_core::contents::ContentSource;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

/// Bytes requested from the store at a time: the memory that a client occupies if it does not read
/// the response.
const CHUNK: u64 = 1024 * 1024;

/// A range of a content, read by blocking threads a chunk ahead of the network. A content that is
/// damaged, removed or out of reach ends the connection before the last byte.
pub(crate) struct StoredBody {
    source: Arc<dyn ContentSource>,
    at: u64,
    remaining: u64,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl StoredBody {
    /// The `length` bytes from `start` on.
    pub(crate) fn new(source: Arc<dyn ContentSource>, start: u64, length: u64) -> Self {
        Self { source, at: start, remaining: length, reading: None }
    }
}

fn read_chunk(source: &dyn ContentSource, at: u64, wanted: u64) -> io::Result<Vec<u8>> {
    let mut chunk = vec![0; wanted as usize];
    loop {
        match source.read_at(at, &mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                chunk.truncate(read);
                return Ok(chunk);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                tracing::error!("cannot send a kept content: {error}");
                return Err(error);
            }
        }
    }
}

impl Body for StoredBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.remaining == 0 {
            return Poll::Ready(None);
        }
        let this = &mut *self;
        let reading = this.reading.get_or_insert_with(|| {
            let (source, at) = (Arc::clone(&this.source), this.at);
            let wanted = this.remaining.min(CHUNK);
            tokio::task::spawn_blocking(move || read_chunk(&*source, at, wanted))
        });
        let read = ready!(Pin::new(reading).poll(cx));
        this.reading = None;
        match read.map_err(io::Error::other).flatten() {
            Ok(chunk) => {
                this.at += chunk.len() as u64;
                this.remaining -= chunk.len() as u64;
                Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
            }
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}
