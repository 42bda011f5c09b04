//! A folder of stored contents, opened by one process: put, sync, read, remove.

use crate::address_of;
use crate::content::Content;
use crate::digest::digest_of;
use crate::error::{Error, ErrorKind};
use crate::layout::{self, Layout, Temporary};
use crate::packed::{CompactionThread, Files, Limits, Packed};
use crate::pins::{PinnedContent, Pins};
use abreast_core::ContentId;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek as _, Write as _};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes read at a time.
const CHUNK: usize = 256 * 1024;
/// Most new files that are synced one by one; if there are more, the whole file system is synced.
const SYNC_EACH: usize = 8;

/// A folder of contents, whose addresses are their BLAKE3 digests. Small contents are packed
/// together, large contents are files. A clone shares the folder.
#[derive(Clone)]
pub struct Contents {
    inner: Arc<Inner>,
}

struct Inner {
    /// First field, so that the thread is dropped first.
    _tidying: CompactionThread,
    packed: Arc<Packed>,
    layout: Layout,
    pins: Arc<Pins>,
    /// Contents put since the start of the last sync.
    fresh: Mutex<NewContents>,
    /// One sync at a time: a second caller waits until the first has made its contents durable.
    syncing: Mutex<()>,
    untrusted: AtomicBool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // On failure, the next open reads the entries from the segments.
        let _ = self.packed.close();
    }
}

#[derive(Default)]
struct NewContents {
    ids: Vec<ContentId>,
    /// Whether there are more new contents than `ids` lists.
    more: bool,
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contents").finish_non_exhaustive()
    }
}

impl Contents {
    /// Opens the folder at this path, and creates it if it does not exist. Existing contents are
    /// made durable first, because a killed process may have put them without a sync.
    ///
    /// # Errors
    /// Another process has it open ([`ErrorKind::Busy`]), or the disk failed.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, Limits::default())
    }

    /// As [`Contents::open`], with other sizes of its files.
    ///
    /// # Errors
    /// As [`Contents::open`].
    pub fn open_with(path: &Path, limits: Limits) -> Result<Self, Error> {
        let layout = Layout::open(path)?;
        layout.sync_filesystem().map_err(|cause| {
            Error::io(&format!("make the folder {} durable", path.display()), cause)
        })?;
        let packed = Files::open(layout.root(), layout.temporary_folder())
            .and_then(|files| Packed::open(files, limits).map(Arc::new))
            .map_err(|cause| {
                Error::io(&format!("open the packed contents in {}", path.display()), cause)
            })?;
        let tidying = CompactionThread::start(Arc::clone(&packed))
            .map_err(|cause| Error::io("start the thread that compacts packed contents", cause))?;
        let inner = Inner {
            _tidying: tidying,
            packed,
            layout,
            pins: Arc::default(),
            fresh: Mutex::default(),
            syncing: Mutex::default(),
            untrusted: AtomicBool::new(false),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Stores bytes. They are durable after the next [`Contents::sync`].
    ///
    /// # Errors
    /// The disk is full or failed; then none of the bytes remain.
    pub fn put_bytes(&self, bytes: &[u8]) -> Result<PinnedContent, Error> {
        self.trusted()?;
        let id = address_of(bytes);
        let kept = self.inner.pins.pin(id, bytes.len() as u64);
        if self.is_file(&kept)? {
            return Ok(kept);
        }
        if bytes.len() as u64 <= self.packed_bytes() {
            self.inner.packed.put(&id, bytes).map_err(writing)?;
        } else {
            let mut temporary = self.temporary()?;
            temporary.file.write_all(bytes).map_err(writing)?;
            self.place(temporary, &kept)?;
        }
        Ok(kept)
    }

    /// Reads to the end of a reader, at most `limit` bytes, and stores the bytes.
    ///
    /// # Errors
    /// The reader failed ([`ErrorKind::Input`]) or has more bytes ([`ErrorKind::TooLong`]); the
    /// disk is full or failed. Then none of the bytes remain.
    pub fn put_reader(&self, reader: &mut dyn Read, limit: u64) -> Result<PinnedContent, Error> {
        self.trusted()?;
        let (begin, ended) = self.begin(reader, limit)?;
        if ended {
            return self.put_bytes(&begin);
        }
        let mut temporary = self.temporary()?;
        let mut whole = begin.chain(reader);
        let (id, length) = digest(&mut whole, limit, &mut |bytes| {
            temporary.file.write_all(bytes).map_err(writing)
        })?;
        self.keep(temporary, id, length)
    }

    /// Reads at most the size of a packed content; returns whether the reader was at its end.
    fn begin(&self, reader: &mut dyn Read, limit: u64) -> Result<(Vec<u8>, bool), Error> {
        let most = self.packed_bytes();
        let mut begin = Vec::new();
        reader.take(most + 1).read_to_end(&mut begin).map_err(Error::input)?;
        if begin.len() as u64 > limit {
            return Err(too_long(limit));
        }
        let ended = begin.len() as u64 <= most;
        Ok((begin, ended))
    }

    /// Stores the bytes of a file, at most `limit`. Passes the bytes to `seen` too, so that other
    /// digests need no second reading; an error of `seen` stops the call. If the file system
    /// supports it, the copy shares the file's blocks.
    ///
    /// If the file is written during the call, the stored bytes may be a mixture of old and new
    /// ones: the caller must check this.
    ///
    /// # Errors
    /// As [`Contents::put_reader`].
    pub fn put_file(
        &self,
        file: &File,
        limit: u64,
        seen: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<PinnedContent, Error> {
        self.trusted()?;
        if file.metadata().map_err(Error::input)?.len() <= self.packed_bytes() {
            let mut original = file;
            original.rewind().map_err(Error::input)?;
            let (begin, ended) = self.begin(&mut original, limit)?;
            // A file that grows while it is read is copied below.
            if ended {
                seen(&begin).map_err(Error::input)?;
                return self.put_bytes(&begin);
            }
        }
        let mut temporary = self.temporary()?;
        let (id, length) = if clone_file(&temporary.file, file) {
            let mut copy = &temporary.file;
            digest(&mut copy, limit, &mut |bytes| seen(bytes).map_err(Error::input))?
        } else {
            let mut original = file;
            original.rewind().map_err(Error::input)?;
            digest(&mut original, limit, &mut |bytes| {
                seen(bytes).map_err(Error::input)?;
                temporary.file.write_all(bytes).map_err(writing)
            })?
        };
        self.keep(temporary, id, length)
    }

    /// Pins stored bytes, as if they had been put again; `None` if they are not stored.
    ///
    /// # Errors
    /// The disk failed.
    pub fn hold(&self, id: &ContentId) -> Result<Option<PinnedContent>, Error> {
        // Pin first, so that found bytes cannot be removed.
        let kept = self.inner.pins.pin(*id, 0);
        Ok(self.length(id)?.map(|length| kept.with_length(length)))
    }

    /// Makes all contents durable that were put before the call.
    ///
    /// # Errors
    /// The disk failed: then further contents are refused until the folder is opened again.
    pub fn sync(&self) -> Result<(), Error> {
        let _one_at_a_time = self.inner.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        self.trusted()?;
        let fresh =
            std::mem::take(&mut *self.inner.fresh.lock().unwrap_or_else(PoisonError::into_inner));
        let layout = &self.inner.layout;
        let synced = if fresh.more {
            layout.sync_filesystem()
        } else {
            fresh.ids.iter().try_for_each(|id| layout.sync_one(id))
        };
        let synced = synced.map_err(io::Error::from).and_then(|()| self.inner.packed.sync());
        synced.map_err(|cause| {
            self.inner.untrusted.store(true, Ordering::SeqCst);
            Error::io("make kept contents durable", cause)
        })
    }

    /// Opens stored bytes for reading. An open content can be read to its end, also if it is
    /// removed meanwhile. Small contents are read whole, and compared with their address.
    ///
    /// # Errors
    /// They are not stored ([`ErrorKind::NotFound`]) or damaged ([`ErrorKind::Damaged`]), or the
    /// disk failed.
    pub fn open_read(&self, id: &ContentId) -> Result<Content, Error> {
        open_content(&self.inner.packed, self.inner.layout.root(), id)
    }

    /// Whether the folder has a content with this address.
    ///
    /// # Errors
    /// The disk failed.
    pub fn contains(&self, id: &ContentId) -> Result<bool, Error> {
        self.length(id).map(|length| length.is_some())
    }

    /// Whether the folder has a content with this address and its bytes are undamaged. Reads the
    /// bytes.
    ///
    /// # Errors
    /// The disk failed.
    pub fn is_whole(&self, id: &ContentId) -> Result<bool, Error> {
        match self.open_read(id) {
            Ok(mut content) => digest_of(&mut content)
                .map(|(found, _)| found == *id)
                .map_err(|cause| examining(id, cause)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Damaged) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Length in bytes of the content with this address, if it is stored.
    ///
    /// # Errors
    /// The disk failed.
    pub fn length(&self, id: &ContentId) -> Result<Option<u64>, Error> {
        content_length(&self.inner.packed, self.inner.layout.root(), id)
    }

    /// Removes stored bytes unless they are pinned, or `needed` returns that a row refers to them.
    /// All other calls that pin contents wait during `needed`, so it should check one row only.
    /// Returns whether the bytes were removed.
    ///
    /// # Errors
    /// `needed` failed, or the disk.
    pub fn remove_unless<E: From<Error>>(
        &self,
        id: &ContentId,
        needed: impl FnOnce() -> Result<bool, E>,
    ) -> Result<bool, E> {
        let pins = self.inner.pins.lock();
        if pins.contains_key(id) || needed()? {
            return Ok(false);
        }
        // In both places: a content may be packed and a file.
        let packed = self.inner.packed.remove(id);
        let file = self.inner.layout.remove(id);
        drop(pins);
        let removed = packed.and_then(|packed| Ok(file? || packed));
        Ok(removed.map_err(|cause| Error::io(&format!("remove the kept content {id}"), cause))?)
    }

    /// Removes stored bytes unless they are pinned; returns whether they were removed.
    ///
    /// # Errors
    /// The disk failed.
    pub fn remove(&self, id: &ContentId) -> Result<bool, Error> {
        self.remove_unless(id, || Ok(false))
    }

    /// Visits the addresses of stored bytes whose first byte is `first`, in order: call it with 0
    /// to 255 to visit all. Contents that are put or removed meanwhile may be visited or not.
    ///
    /// # Errors
    /// The disk failed.
    pub fn visit(
        &self,
        first: u8,
        visit: &mut dyn FnMut(ContentId) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        visit_part(&self.inner.packed, self.inner.layout.root(), first, &mut |id, _| Ok(visit(id)))
            .map_err(|cause| Error::io("list the kept contents", cause))
    }

    /// Appends a packed content again, for the case that its record is damaged but its bytes are
    /// not.
    ///
    /// # Errors
    /// The disk is full or failed.
    pub fn rewrite(&self, id: &ContentId) -> Result<(), Error> {
        self.inner.packed.rewrite(id).map_err(writing)
    }

    /// Compacts packed contents now, not in the background, to free the space of removed contents.
    ///
    /// # Errors
    /// The disk is full or failed.
    pub fn compact(&self) -> Result<(), Error> {
        self.inner
            .packed
            .tidy_now()
            .map_err(|cause| Error::io("compact the packed contents", cause))
    }

    fn packed_bytes(&self) -> u64 {
        u64::from(self.inner.packed.limits().packed_bytes)
    }

    fn trusted(&self) -> Result<(), Error> {
        if self.inner.untrusted.load(Ordering::SeqCst) {
            let message = "the disk failed to make contents durable, nothing more is kept\n  help: check the disk, \
                           then start again";
            return Err(Error::new(ErrorKind::Untrusted, message));
        }
        Ok(())
    }

    fn temporary(&self) -> Result<Temporary<'_>, Error> {
        self.inner.layout.temporary().map_err(|cause| writing(cause.into()))
    }

    /// Whether these bytes exist as an intact file. A damaged file is replaced by the caller's
    /// bytes.
    fn is_file(&self, kept: &PinnedContent) -> Result<bool, Error> {
        let (root, id) = (self.inner.layout.root(), kept.id());
        let length = layout::length(root, &id).map_err(|cause| examining(&id, cause.into()))?;
        if length != Some(kept.length()) {
            return Ok(false);
        }
        let found = layout::open_read(root, &id)
            .map_err(io::Error::from)
            .and_then(|mut file| digest_of(&mut file));
        Ok(found.is_ok_and(|(found, _)| found == id))
    }

    fn keep(
        &self,
        temporary: Temporary<'_>,
        id: ContentId,
        length: u64,
    ) -> Result<PinnedContent, Error> {
        let kept = self.inner.pins.pin(id, length);
        if !self.is_file(&kept)? {
            self.place(temporary, &kept)?;
        }
        Ok(kept)
    }

    fn place(&self, temporary: Temporary<'_>, kept: &PinnedContent) -> Result<(), Error> {
        // Under the lock: a concurrent put that sees the file then finds it in the list for its
        // sync.
        let mut fresh = self.inner.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        temporary.place(&kept.id()).map_err(|cause| writing(cause.into()))?;
        if fresh.ids.len() < SYNC_EACH {
            fresh.ids.push(kept.id());
        } else {
            fresh.more = true;
        }
        Ok(())
    }
}

/// Opens a content, packed or a file.
pub(crate) fn open_content(
    packed: &Packed,
    root: &OwnedFd,
    id: &ContentId,
) -> Result<Content, Error> {
    let opening = |cause: io::Error| Error::io(&format!("open the kept content {id}"), cause);
    match packed.read(id).map_err(opening)? {
        Some(bytes) => Ok(Content::Bytes(Cursor::new(bytes))),
        None => {
            layout::open_read(root, id).map(Content::File).map_err(|cause| opening(cause.into()))
        }
    }
}

/// Length of a content in bytes, packed or a file.
pub(crate) fn content_length(
    packed: &Packed,
    root: &OwnedFd,
    id: &ContentId,
) -> Result<Option<u64>, Error> {
    match packed.length(id).map_err(|cause| examining(id, cause))? {
        Some(length) => Ok(Some(length)),
        None => layout::length(root, id).map_err(|cause| examining(id, cause.into())),
    }
}

/// Visits contents, packed ones and files, whose address starts with the byte `first`, in the order
/// of their addresses. A content with both forms is visited once. The addresses in one folder of
/// files are in memory.
pub(crate) fn visit_part(
    packed: &Packed,
    root: &OwnedFd,
    first: u8,
    visit: &mut dyn FnMut(ContentId, Option<u64>) -> io::Result<ControlFlow<()>>,
) -> io::Result<()> {
    let mut files = Vec::new();
    layout::visit(root, first, &mut |id| {
        files.push(id);
        ControlFlow::Continue(())
    })?;
    files.sort_unstable();
    let mut files = files.into_iter().peekable();
    let (mut from, mut to) = ([0; ContentId::BYTES], [u8::MAX; ContentId::BYTES]);
    (from[0], to[0]) = (first, first);
    let mut flow = ControlFlow::Continue(());
    packed.visit(&ContentId(from), &ContentId(to), &mut |id, length| {
        while let Some(file) = files.next_if(|file| *file < id) {
            flow = visit(file, None)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        files.next_if_eq(&id);
        flow = visit(id, Some(length))?;
        Ok(flow)
    })?;
    for file in files {
        if flow.is_break() {
            break;
        }
        flow = visit(file, None)?;
    }
    Ok(())
}

fn examining(id: &ContentId, cause: io::Error) -> Error {
    Error::io(&format!("examine the kept content {id}"), cause)
}

fn too_long(limit: u64) -> Error {
    Error::new(ErrorKind::TooLong, format!("there are more than {limit} bytes to keep"))
}

fn writing(cause: io::Error) -> Error {
    Error::io("write to the folder of kept contents", cause)
}

/// Reads to the end, passing the bytes on to `to`.
fn digest(
    reader: &mut dyn Read,
    limit: u64,
    to: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(ContentId, u64), Error> {
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; CHUNK];
    let mut length = 0;
    loop {
        let read = match reader.read(&mut chunk) {
            Ok(0) => return Ok((ContentId(*hasher.finalize().as_bytes()), length)),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::input(error)),
        };
        length += read as u64;
        if length > limit {
            return Err(too_long(limit));
        }
        hasher.update(&chunk[..read]);
        to(&chunk[..read])?;
    }
}

/// Makes an empty file share the blocks of another; false if this is not possible.
#[cfg(target_os = "linux")]
fn clone_file(to: &File, from: &File) -> bool {
    rustix::fs::ioctl_ficlone(to, from).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn clone_file(_to: &File, _from: &File) -> bool {
    false
}
