//! Response bodies: bytes in memory, or a file in chunks.

use crate::message::stored_body::StoredBody;
use crate::observe::access::Entry;
use abreast_folder::Stat;
use bytes::Bytes;
use http_body_util::{Full, combinators::UnsyncBoxBody};
use hyper::body::{Body, Frame, SizeHint};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

/// Bytes read from a file at a time: the memory that a client occupies if it does not read the
/// response.
const CHUNK: u64 = 128 * 1024;

/// A response body.
pub(crate) enum ResponseBody {
    Memory(Full<Bytes>),
    File(FileBody),
    Stored(StoredBody),
    /// A response with several ranges, which is rare.
    Parts(UnsyncBoxBody<Bytes, io::Error>),
}

impl ResponseBody {
    pub(crate) fn empty() -> Self {
        Self::Memory(Full::default())
    }
}

/// A body that holds what counts its request as in flight, until the last byte was sent.
pub(crate) struct Guarded<H> {
    body: ResponseBody,
    /// The request in the access log, whose line is written when this is dropped.
    entry: Option<Box<Entry>>,
    _held: H,
}

impl<H> Guarded<H> {
    pub(crate) fn new(body: ResponseBody, entry: Option<Box<Entry>>, held: H) -> Self {
        let mut guarded = Self { body, entry, _held: held };
        guarded.note_end();
        guarded
    }

    fn note_end(&mut self) {
        if let Some(entry) = &mut self.entry
            && self.body.is_end_stream()
        {
            entry.complete();
        }
    }
}

impl<H: Unpin> Body for Guarded<H> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if let Some(entry) = &mut this.entry {
            match &frame {
                Some(Ok(frame)) => entry.sent(frame.data_ref().map_or(0, Bytes::len)),
                Some(Err(_)) => {}
                None => entry.complete(),
            }
            this.note_end();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
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

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Memory(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Self::File(body) => Pin::new(body).poll_frame(cx),
            Self::Stored(body) => Pin::new(body).poll_frame(cx),
            Self::Parts(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Memory(body) => body.is_end_stream(),
            Self::File(body) => body.remaining == 0,
            Self::Stored(body) => body.is_end_stream(),
            Self::Parts(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Memory(body) => body.size_hint(),
            Self::File(body) => SizeHint::with_exact(body.remaining),
            Self::Stored(body) => body.size_hint(),
            Self::Parts(body) => body.size_hint(),
        }
    }
}

/// A range of a file, read by blocking threads a chunk ahead of the network.
///
/// A file that shrank or was written meanwhile ends the connection before the last byte: the
/// promised length is never filled with bytes from another version.
pub(crate) struct FileBody {
    file: Arc<File>,
    /// Metadata of the file at the start of the response.
    stat: Stat,
    at: u64,
    remaining: u64,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl FileBody {
    /// The `length` bytes from `start` on.
    pub(crate) fn new(file: Arc<File>, stat: Stat, start: u64, length: u64) -> Self {
        Self { file, stat, at: start, remaining: length, reading: None }
    }
}

fn read_chunk(file: &File, stat: &Stat, at: u64, wanted: usize, last: bool) -> io::Result<Vec<u8>> {
    let mut chunk = Vec::with_capacity(wanted);
    while chunk.len() < wanted {
        let at = at + chunk.len() as u64;
        match rustix::io::pread(file, spare_capacity(&mut chunk), at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    chunk.truncate(wanted);
    if last && !unchanged(file, stat)? {
        return Err(io::Error::other("the file was written while it was sent"));
    }
    Ok(chunk)
}

/// Whether the file is unchanged since `before`, so that all bytes are from the same version.
pub(crate) fn unchanged(file: &File, before: &Stat) -> io::Result<bool> {
    let now = Stat::of(file).map_err(io::Error::other)?;
    Ok((now.size, now.mtime_ns) == (before.size, before.mtime_ns))
}

impl Body for FileBody {
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
            let (file, stat, at) = (Arc::clone(&this.file), this.stat, this.at);
            let wanted = this.remaining.min(CHUNK) as usize;
            let last = wanted as u64 == this.remaining;
            tokio::task::spawn_blocking(move || read_chunk(&file, &stat, at, wanted, last))
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
}
