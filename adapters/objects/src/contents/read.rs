//! Reading contents: small ones whole, large ones in ranges.

use super::{CONTENTS, Inner, S3Contents};
use crate::failure::failed;
use abreast_core::ContentId;
use abreast_core::contents::{
    Content, ContentSource, Error, ErrorKind, SequentialCheck, address_of,
};
use bytes::Bytes;
use object_store::ObjectMeta;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes that are read when a content is opened: the whole of a small content.
const FIRST: u64 = 64 * 1024;
/// Maximum number of bytes that are fetched by one request.
const FETCHED_MAX: u64 = 4 << 20;

impl S3Contents {
    /// Opens a content: reads a small one whole, and the start of a large one.
    pub(super) fn open_object(&self, id: &ContentId) -> Result<Content, Error> {
        let (meta, first) = first(&self.inner, id)?;
        if meta.size == first.len() as u64 {
            if address_of(&first) != *id {
                return Err(damaged(id));
            }
            return Ok(Content::of_bytes(first.into()));
        }
        let object = ContentObject::new(Arc::clone(&self.inner), id, meta, first);
        Ok(Content::new(Arc::new(object)))
    }
}

/// The metadata of an object and its first bytes. A range of an empty object is refused.
fn first(inner: &Inner, id: &ContentId) -> Result<(ObjectMeta, Bytes), Error> {
    let got = if *id == address_of(b"") {
        Err(Error::new(ErrorKind::Other, "an empty content has no range"))
    } else {
        inner.fetch(id, 0..FIRST, None)
    };
    match got {
        Err(error) if error.kind() == ErrorKind::Other => match inner.head(id)? {
            Some(meta) if meta.size == 0 => Ok((meta, Bytes::new())),
            Some(_) if *id == address_of(b"") => Err(damaged(id)),
            None if *id == address_of(b"") => {
                let message = format!("the content {id} is not kept");
                Err(Error::new(ErrorKind::NotFound, message))
            }
            // `None` also if the bucket is missing, which an answer without a body does not show.
            _ => Err(error),
        },
        got => got,
    }
}

impl Inner {
    /// A range of an object with its metadata. With an entity tag, another version is an error.
    fn fetch(
        &self,
        id: &ContentId,
        range: Range<u64>,
        tag: Option<&str>,
    ) -> Result<(ObjectMeta, Bytes), Error> {
        let (key, task) = (self.key(CONTENTS, id), format!("read the kept content {id}"));
        let got = self.requests().range(&task, &key, range, tag)?;
        got.map_err(|cause| match cause {
            object_store::Error::Precondition { .. } => damaged(id).with_cause(cause),
            cause => failed(&task, &cause),
        })
    }
}

fn damaged(id: &ContentId) -> Error {
    let message = format!(
        "the object of the kept content {id} has other bytes\n  help: restore the object from a backup, or remove it \
         and put the content again"
    );
    Error::new(ErrorKind::Damaged, message)
}

/// An object that is read once, to be written again.
pub(super) struct Ranges<'a> {
    pub(super) inner: &'a Inner,
    pub(super) id: ContentId,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl Ranges<'_> {
    /// A reader that fetches as much as possible by each request.
    pub(super) fn buffered(self) -> BufReader<Self> {
        BufReader::with_capacity(FETCHED_MAX as usize, self)
    }
}

impl Read for Ranges<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = self.length.min(self.offset + FETCHED_MAX.min(buffer.len() as u64));
        if self.offset == end {
            return Ok(0);
        }
        let (_, bytes) = self.inner.fetch(&self.id, self.offset..end, None)?;
        let read = bytes.len().min(buffer.len());
        buffer[..read].copy_from_slice(&bytes[..read]);
        self.offset += read as u64;
        Ok(read)
    }
}

/// Bytes of a large content that were fetched ahead.
struct Window {
    start: u64,
    bytes: Bytes,
}

impl Window {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Copies the bytes at an offset; returns 0 if they are not there.
    fn copy(&self, offset: u64, buffer: &mut [u8]) -> usize {
        if !(self.start..self.end()).contains(&offset) {
            return 0;
        }
        let bytes = &self.bytes[(offset - self.start) as usize..];
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        length
    }
}

/// A large content, which is read in ranges.
struct ContentObject {
    inner: Arc<Inner>,
    id: ContentId,
    length: u64,
    tag: Option<String>,
    window: Mutex<Window>,
    check: SequentialCheck,
}

impl fmt::Debug for ContentObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentObject").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ContentObject {
    fn new(inner: Arc<Inner>, id: &ContentId, meta: ObjectMeta, first: Bytes) -> Self {
        let check = SequentialCheck::new(*id, meta.size);
        let window = Mutex::new(Window { start: 0, bytes: first });
        Self { inner, id: *id, length: meta.size, tag: meta.e_tag, window, check }
    }

    /// Fetches a range, or its first part if it is long.
    fn fetch(&self, offset: u64, wanted: u64) -> io::Result<Bytes> {
        let end = self.length.min(offset + wanted.min(FETCHED_MAX));
        let (meta, bytes) = self.inner.fetch(&self.id, offset..end, self.tag.as_deref())?;
        if meta.size != self.length || bytes.len() as u64 != end - offset {
            return Err(damaged(&self.id).into());
        }
        Ok(bytes)
    }

    fn read(&self, offset: u64, buffer: &mut [u8], ahead: bool) -> io::Result<usize> {
        if offset >= self.length || buffer.is_empty() {
            return Ok(0);
        }
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = window.copy(offset, buffer);
        if read == 0 {
            let wanted = buffer.len() as u64;
            let wanted = match ahead {
                false => wanted,
                // A reader that continues gets twice as many bytes each time.
                true if offset == window.end() => wanted.max(2 * window.bytes.len() as u64),
                true => wanted.max(FIRST),
            };
            if ahead {
                *window = Window { start: offset, bytes: self.fetch(offset, wanted)? };
                read = window.copy(offset, buffer);
                drop(window);
            } else {
                // Readers of several ranges do not wait for each other.
                drop(window);
                let bytes = self.fetch(offset, wanted)?;
                read = bytes.len();
                buffer[..read].copy_from_slice(&bytes);
            }
        }
        self.check.add(offset, &buffer[..read])?;
        Ok(read)
    }
}

impl ContentSource for ContentObject {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.read(offset, buffer, false)
    }

    fn read_ahead(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.read(offset, buffer, true)
    }

    fn signed_url(&self, media_type: &str, valid: Duration) -> io::Result<Option<String>> {
        let (key, task) =
            (self.inner.key(CONTENTS, &self.id), format!("sign a URL of the content {}", self.id));
        Ok(self.inner.requests().signed_url(&task, &key, media_type, valid)?)
    }
}
