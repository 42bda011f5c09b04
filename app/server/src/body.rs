//! Bytes on their way out: from memory, or from a file in chunks.

use bytes::Bytes;
use http_body_util::{Full, combinators::UnsyncBoxBody};
use hyper::body::{Body, Frame, SizeHint};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::task::JoinHandle;

/// Bytes read from a file at a time.
pub(crate) const CHUNK: usize = 128 * 1024;

/// A response body.
pub(crate) enum ResponseBody {
    Memory(Full<Bytes>),
    File(FileBody),
    /// Several ranges; rare.
    Parts(UnsyncBoxBody<Bytes, io::Error>),
}

impl ResponseBody {
    pub(crate) fn empty() -> Self {
        Self::Memory(Full::default())
    }
}

impl<T: Into<Bytes>> From<T> for ResponseBody {
    fn from(bytes: T) -> Self {
        Self::Memory(Full::new(bytes.into()))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Memory(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Self::File(body) => Pin::new(body).poll_frame(cx),
            Self::Parts(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Memory(body) => body.is_end_stream(),
            Self::File(body) => body.remaining == 0,
            Self::Parts(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Memory(body) => body.size_hint(),
            Self::File(body) => SizeHint::with_exact(body.remaining),
            Self::Parts(body) => body.size_hint(),
        }
    }
}

type Chunk = (File, io::Result<Vec<u8>>);

/// A range of a file, read by blocking threads a chunk ahead of the network.
/// A file that shrank meanwhile ends the connection: the promised length is never filled with other bytes.
pub(crate) struct FileBody {
    file: Option<File>,
    /// Where to go before the next read.
    seek: Option<u64>,
    reading: Option<JoinHandle<Chunk>>,
    remaining: u64,
}

impl FileBody {
    /// The bytes from `start` on, `length` of them.
    pub(crate) fn new(file: File, start: u64, length: u64) -> Self {
        Self { file: Some(file), seek: (start > 0).then_some(start), reading: None, remaining: length }
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.remaining == 0 {
            return Poll::Ready(None);
        }
        if let Some(mut file) = self.file.take() {
            let wanted = self.remaining.min(CHUNK as u64) as usize;
            let seek = self.seek.take();
            self.reading = Some(tokio::task::spawn_blocking(move || {
                let mut chunk = vec![0; wanted];
                let found = seek.map_or(Ok(0), |start| file.seek(SeekFrom::Start(start)));
                let read = found.and_then(|_| file.read_exact(&mut chunk)).map(|()| chunk);
                (file, read)
            }));
        }
        let Some(reading) = &mut self.reading else {
            return Poll::Ready(Some(Err(io::Error::other("the file could not be read"))));
        };
        let (file, chunk) = match std::task::ready!(Pin::new(reading).poll(cx)) {
            Ok(done) => done,
            Err(error) => return Poll::Ready(Some(Err(io::Error::other(error)))),
        };
        self.reading = None;
        match chunk {
            Ok(chunk) => {
                self.remaining -= chunk.len() as u64;
                self.file = Some(file);
                Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
            }
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}
