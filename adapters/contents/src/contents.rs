//! A folder of stored contents, opened by one process: put, sync, read, remove.

use crate::content;
use crate::error::failed;
use crate::layout::{self, Layout, Temporary};
use crate::packed::{CompactionThread, Files, Limits, Packed};
use abreast_core::ContentId;
use abreast_core::contents::{
    Content, ContentHasher, ContentStore, Error, ErrorKind, PinnedContent, Pins, address_of,
    digest_of,
};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, OwnedFd};
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
            failed(&format!("make the folder {} durable", path.display()), cause)
        })?;
        let packed = Files::open(layout.root(), layout.temporary_folder())
            .and_then(|files| Packed::open(files, limits).map(Arc::new))
            .map_err(|cause| {
                failed(&format!("open the packed contents in {}", path.display()), cause)
            })?;
        let tidying = CompactionThread::start(Arc::clone(&packed))
            .map_err(|cause| failed("start the thread that compacts packed contents", cause))?;
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
        self.inner.packed.tidy_now().map_err(|cause| failed("compact the packed contents", cause))
    }

    /// Reads at most the size of a packed content; returns whether the reader was at its end.
    fn begin(&self, reader: &mut dyn Read, limit: u64) -> Result<(Vec<u8>, bool), Error> {
        let most = self.packed_bytes();
        let mut begin = Vec::new();
        reader.take(most + 1).read_to_end(&mut begin).map_err(Error::input)?;
        if begin.len() as u64 > limit {
            return Err(Error::too_long(limit));
        }
        let ended = begin.len() as u64 <= most;
        Ok((begin, ended))
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

impl ContentStore for Contents {
    fn put_bytes(&self, bytes: &[u8]) -> Result<PinnedContent, Error> {
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

    fn put_reader(&self, reader: &mut dyn Read, limit: u64) -> Result<PinnedContent, Error> {
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

    fn put_file(
        &self,
        file: BorrowedFd<'_>,
        limit: u64,
        seen: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<PinnedContent, Error> {
        self.trusted()?;
        // A copy of the handle; both have one offset.
        let file = &File::from(file.try_clone_to_owned().map_err(Error::input)?);
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

    fn hold(&self, id: &ContentId) -> Result<Option<PinnedContent>, Error> {
        // Pin first, so that found bytes cannot be removed.
        let kept = self.inner.pins.pin(*id, 0);
        Ok(self.length(id)?.map(|length| kept.with_length(length)))
    }

    fn sync(&self) -> Result<(), Error> {
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
            failed("make kept contents durable", cause)
        })
    }

    fn open_read(&self, id: &ContentId) -> Result<Content, Error> {
        open_content(&self.inner.packed, self.inner.layout.root(), id)
    }

    fn length(&self, id: &ContentId) -> Result<Option<u64>, Error> {
        content_length(&self.inner.packed, self.inner.layout.root(), id)
    }

    fn remove_unless(
        &self,
        id: &ContentId,
        needed: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        let removed = self.inner.pins.unless_pinned(id, || {
            if needed() {
                return Ok(false);
            }
            // In both places: a content may be packed and a file.
            let packed = self.inner.packed.remove(id);
            let file = self.inner.layout.remove(id);
            packed.and_then(|packed| Ok(file? || packed))
        });
        removed
            .unwrap_or(Ok(false))
            .map_err(|cause| failed(&format!("remove the kept content {id}"), cause))
    }

    fn visit(
        &self,
        first: u8,
        visit: &mut dyn FnMut(ContentId) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        visit_part(&self.inner.packed, self.inner.layout.root(), first, &mut |id, _| Ok(visit(id)))
            .map_err(|cause| failed("list the kept contents", cause))
    }
}

/// Opens a content, packed or a file.
pub(crate) fn open_content(
    packed: &Packed,
    root: &OwnedFd,
    id: &ContentId,
) -> Result<Content, Error> {
    let opening = |cause: io::Error| failed(&format!("open the kept content {id}"), cause);
    match packed.read(id).map_err(opening)? {
        Some(bytes) => Ok(Content::of_bytes(bytes)),
        None => layout::open_read(root, id)
            .map_err(io::Error::from)
            .and_then(|file| content::of_file(id, file))
            .map_err(opening),
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
    failed(&format!("examine the kept content {id}"), cause)
}

fn writing(cause: io::Error) -> Error {
    failed("write to the folder of kept contents", cause)
}

/// Reads to the end, passing the bytes on to `to`.
fn digest(
    reader: &mut dyn Read,
    limit: u64,
    to: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(ContentId, u64), Error> {
    let mut hasher = ContentHasher::default();
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match reader.read(&mut chunk) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::input(error)),
        };
        if hasher.length() + read as u64 > limit {
            return Err(Error::too_long(limit));
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
