//! Cache of rendered documents, in memory and in files.
//!
//! Small documents are cached in memory. Larger documents are written to files of the cache folder
//! while they are rendered, and are never in memory as a whole. Both caches have a limit, and evict
//! the least recently used documents. Each document is rendered and compressed once for all
//! concurrent requests. Documents do not wait for each other, except that large documents take
//! turns ([`Lanes`]). Each rendering has its own thread: an allocator reserves freed memory for the
//! thread that freed it, so that a pool of threads would hold the memory of one rendering per
//! thread.

use super::body::{Body, CacheFile, Document};
use super::document::{LogState, Output, ResolvedDocument, Version};
use super::error::PublishError;
use super::head_reader::HeadReader;
use super::lanes::{Lanes, Turn};
use abreast_core::{Clock as _, SystemClock, spawn_scoped};
use abreast_websub::topic_links;
use abreast_webtypes::Timestamp;
use flate2::{Compression, write::GzEncoder};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Documents up to this size stay in memory.
pub(super) const MEMORY_DOCUMENT: usize = 1024 * 1024;
/// Bytes made for one request that stay in memory while they are sent.
const SENT_FROM_MEMORY: usize = 256 * 1024;
/// Bytes made for one request that are in files while they are sent, of all clients together; beyond them
/// clients are asked to come back.
const SENT_TOTAL: u64 = 2 << 30;
/// All documents in memory together.
const MEMORY_TOTAL: u64 = 12 * 1024 * 1024;
/// All documents in files together.
const DISK_TOTAL: u64 = 1024 * 1024 * 1024;

/// The place of a document in the cache.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    pub(crate) path: &'p str,
    /// Edition of the set, or of all sets. A document of another edition is not used.
    pub(crate) edition: u64,
}

struct Slot {
    edition: u64,
    version: Version,
    /// State of the log, read before the version was determined. The version is valid while the log
    /// has this state.
    at: Option<LogState>,
    document: Arc<Document>,
    used: u64,
}

#[derive(Default)]
struct Slots {
    by_path: HashMap<Arc<str>, Slot>,
    tick: u64,
    /// Latest time of a rendered document; never decreases.
    modified: Timestamp,
}

pub(crate) struct DocumentCache {
    folder: PathBuf,
    slots: Mutex<Slots>,
    /// One lock for each document that is being rendered. The renderer holds the lock, and other
    /// requests wait for it.
    rendering: Mutex<HashMap<Arc<str>, Weak<Mutex<()>>>>,
    lanes: Lanes,
    file_number: AtomicU64,
    /// Bytes in all files that were made for one request.
    sent: Arc<AtomicU64>,
}

impl DocumentCache {
    pub(crate) fn new(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            // Files with other names belong to other programs.
            if is_own_name(&entry.file_name()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Self {
            folder,
            slots: Mutex::default(),
            rendering: Mutex::default(),
            lanes: Lanes::default(),
            file_number: AtomicU64::new(0),
            sent: Arc::default(),
        })
    }

    /// Returns the document if it is cached and was of the newest version when the log had this
    /// state.
    pub(crate) fn fresh_at(&self, place: Place<'_>, at: LogState) -> Option<Arc<Document>> {
        self.fresh(place, |slot| slot.at == Some(at))
    }

    /// Returns the document if it is cached with this version, which is the newest version for this
    /// state of the log.
    pub(crate) fn of_version(
        &self,
        place: Place<'_>,
        version: &Version,
        at: Option<LogState>,
    ) -> Option<Arc<Document>> {
        self.fresh(place, |slot| {
            let same = slot.version == *version;
            if same {
                slot.at = at;
            }
            same
        })
    }

    fn fresh(
        &self,
        place: Place<'_>,
        is_fresh: impl FnOnce(&mut Slot) -> bool,
    ) -> Option<Arc<Document>> {
        let mut slots = lock(&self.slots);
        slots.tick += 1;
        let tick = slots.tick;
        let slot = slots.by_path.get_mut(place.path)?;
        if slot.edition != place.edition || !is_fresh(slot) {
            return None;
        }
        slot.used = tick;
        Some(Arc::clone(&slot.document))
    }

    /// Returns the cached document, or renders it. Concurrent requests for the same document wait
    /// for the first.
    pub(crate) fn get_or_render(
        &self,
        place: Place<'_>,
        resolved: &dyn ResolvedDocument,
        heads: HeadReader<'_>,
    ) -> Result<Arc<Document>, PublishError> {
        // The head of the log is read first, so that the version is at least as new.
        let at = resolved.follows().and_then(|set| LogState::of(heads, set));
        if let Some(document) = at.and_then(|at| self.fresh_at(place, at)) {
            return Ok(document);
        }
        let version = &resolved.version(heads)?;
        if let Some(document) = self.of_version(place, version, at) {
            return Ok(document);
        }
        let Place { path, edition } = place;
        let rendering = self.rendering_of(path);
        let _once = lock(&rendering);
        if let Some(document) = self.of_version(place, version, at) {
            return Ok(document);
        }
        let mut document = self.render_version(path, resolved, version)?;
        let mut slots = lock(&self.slots);
        document.modified = Some(slots.modified(path, &document.tag));
        let document = Arc::new(document);
        slots.tick += 1;
        let used = slots.tick;
        slots.by_path.insert(
            path.into(),
            Slot { edition, version: *version, at, document: Arc::clone(&document), used },
        );
        slots.shrink();
        Ok(document)
    }

    /// Renders the document for one request, without caching it. The document has no time of
    /// modification.
    pub(crate) fn render(
        &self,
        path: &str,
        resolved: &dyn ResolvedDocument,
        heads: HeadReader<'_>,
    ) -> Result<Document, PublishError> {
        self.render_version(path, resolved, &resolved.version(heads)?)
    }

    fn render_version(
        &self,
        path: &str,
        resolved: &dyn ResolvedDocument,
        version: &Version,
    ) -> Result<Document, PublishError> {
        let turn = self.lanes.small();
        let (rendered, tag, plain) = apart(move || {
            let mut spill = Spill::new(self, path, turn);
            let mut rendered = resolved.render(&mut spill)?;
            let bytes = std::mem::take(&mut rendered.bytes);
            let (tag, plain) = spill.end(bytes).map_err(PublishError::Cache)?;
            Ok::<_, PublishError>((rendered, tag, plain))
        })?;
        Ok(Document {
            topic: resolved.topic().map(|topic| {
                let sets = resolved.introduces();
                let hubs = sets.iter().filter_map(|set| set.notifications.as_ref());
                let hubs = hubs.flat_map(|notifications| &notifications.hubs);
                topic_links(hubs.map(String::as_str), &topic, "")
            }),
            media_types: resolved.media_types(),
            other_form: resolved.other_form(),
            introduces: resolved.introduces(),
            is_newest: resolved.is_newest(),
            content_type: rendered.content_type,
            tag,
            modified: None,
            freshness: version.freshness,
            plain,
            gzip: OnceLock::new(),
            compressing: Mutex::default(),
        })
    }

    /// Returns the lock for rendering the document at this path.
    fn rendering_of(&self, path: &str) -> Arc<Mutex<()>> {
        let mut rendering = lock(&self.rendering);
        if let Some(known) = rendering.get(path).and_then(Weak::upgrade) {
            return known;
        }
        // Remove the locks of finished renderings.
        rendering.retain(|_, lock| lock.strong_count() > 0);
        let new = Arc::default();
        rendering.insert(path.into(), Arc::downgrade(&new));
        new
    }

    /// Returns the document in gzip; compresses the document at the first call.
    pub(crate) fn gzip(&self, document: &Document) -> io::Result<Body> {
        if let Some(body) = document.gzip.get() {
            return Ok(body.clone());
        }
        let _once = lock(&document.compressing);
        if let Some(body) = document.gzip.get() {
            return Ok(body.clone());
        }
        let _turn = self.lanes.of_length(document.plain.length());
        let body = apart(|| match &document.plain {
            Body::Memory(bytes) => {
                let mut encoder =
                    GzEncoder::new(Vec::with_capacity(bytes.len() / 6), Compression::fast());
                encoder.write_all(bytes)?;
                Ok(Body::Memory(encoder.finish()?.into()))
            }
            Body::File(plain) => {
                let (path, file) = self.new_file()?;
                let mut encoder = GzEncoder::new(BufWriter::new(file), Compression::fast());
                let mut kept = CacheFile { path, length: 0, sent: None };
                io::copy(&mut fs::File::open(&plain.path)?, &mut encoder)?;
                let file =
                    encoder.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
                kept.length = file.metadata()?.len();
                // The compressed document may be small enough for memory.
                Ok::<_, io::Error>(if kept.length < MEMORY_DOCUMENT as u64 {
                    Body::Memory(fs::read(&kept.path)?.into())
                } else {
                    Body::File(Arc::new(kept))
                })
            }
        })?;
        let body = document.gzip.get_or_init(|| body).clone();
        lock(&self.slots).shrink();
        Ok(body)
    }

    pub(super) fn turn(&self, bytes: u64) -> Turn<'_> {
        self.lanes.of_length(bytes)
    }

    /// Body for one request, outside the cache: a small body is in memory, a large body in a file
    /// that is removed after use.
    pub(crate) fn body(&self, bytes: Vec<u8>) -> io::Result<Body> {
        if bytes.len() < SENT_FROM_MEMORY {
            return Ok(Body::Memory(bytes.into()));
        }
        let (path, mut file) = self.new_file()?;
        let (length, sent) = (bytes.len() as u64, Arc::clone(&self.sent));
        let others = sent.fetch_add(length, Ordering::Relaxed);
        // The length counts until the file is dropped, here or after it was sent.
        let kept = CacheFile { path, length, sent: Some(sent) };
        if others + length > SENT_TOTAL {
            let message = "too many clients receive large answers at once";
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
        }
        file.write_all(&bytes)?;
        Ok(Body::File(Arc::new(kept)))
    }

    /// Creates a file in the cache folder, with a new name.
    fn new_file(&self) -> io::Result<(PathBuf, fs::File)> {
        let number = self.file_number.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{number}.document"));
        let file = match fs::File::create(&path) {
            // The folder was deleted while the program was running.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&self.folder)?;
                fs::File::create(&path)?
            }
            file => file?,
        };
        Ok((path, file))
    }
}

/// Runs `work` in a new thread. [`Lanes`] limits the number of these threads.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        spawn_scoped(scope, work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Output that buffers a document in memory up to [`MEMORY_DOCUMENT`], and then writes it to a
/// file.
struct Spill<'c> {
    cache: &'c DocumentCache,
    tag: TagHash,
    file: Option<(CacheFile, fs::File)>,
    failure: Option<io::Error>,
    turn: Option<Turn<'c>>,
}

impl Output for Spill<'_> {
    fn expect(&mut self, bytes: u64) {
        self.turn = self.turn.take().map(|turn| self.cache.lanes.change(turn, bytes));
    }

    fn drain(&mut self, bytes: &mut Vec<u8>) {
        if bytes.len() < MEMORY_DOCUMENT {
            return;
        }
        if self.failure.is_none() {
            self.failure = self.write(bytes).err();
        }
        bytes.clear();
    }

    fn restart(&mut self) {
        self.file = None;
        self.failure = None;
        self.tag.restart();
    }
}

impl<'c> Spill<'c> {
    fn new(cache: &'c DocumentCache, path: &str, turn: Turn<'c>) -> Self {
        Self { cache, tag: TagHash::new(path), file: None, failure: None, turn: Some(turn) }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tag.update(bytes);
        let (kept, file) = match &mut self.file {
            Some(file) => file,
            none => {
                let (path, file) = self.cache.new_file()?;
                none.insert((CacheFile { path, length: 0, sent: None }, file))
            }
        };
        file.write_all(bytes)?;
        kept.length += bytes.len() as u64;
        Ok(())
    }

    /// Completes the document with its last bytes. Returns the entity tag and the body.
    fn end(mut self, bytes: Vec<u8>) -> io::Result<(String, Body)> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if self.file.is_none() && bytes.len() < MEMORY_DOCUMENT {
            self.tag.update(&bytes);
            return Ok((self.tag.finish(), Body::Memory(bytes.into())));
        }
        self.write(&bytes)?;
        match self.file {
            Some((kept, _)) => Ok((self.tag.finish(), Body::File(Arc::new(kept)))),
            None => Ok((self.tag.finish(), Body::Memory(bytes.into()))),
        }
    }
}

/// Whether this process or an earlier one gave a cached document this name.
fn is_own_name(name: &std::ffi::OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_suffix(".document"));
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

impl Slots {
    /// Time since which the document at a path has had its bytes: the time of the cached document
    /// if the tags are equal, otherwise now.
    fn modified(&mut self, path: &str, tag: &str) -> Timestamp {
        let known = self.by_path.get(path).filter(|slot| slot.document.tag == tag);
        if let Some(modified) = known.and_then(|slot| slot.document.modified) {
            return modified;
        }
        self.modified = self.modified.max(SystemClock.now());
        self.modified
    }

    fn shrink(&mut self) {
        loop {
            let (mut memory, mut disk) = (0, 0);
            for slot in self.by_path.values() {
                for body in
                    [Some(&slot.document.plain), slot.document.gzip.get()].into_iter().flatten()
                {
                    match body {
                        Body::Memory(bytes) => memory += bytes.len() as u64 + 256,
                        Body::File(file) => disk += file.length,
                    }
                }
            }
            if (memory <= MEMORY_TOTAL && disk <= DISK_TOTAL) || self.by_path.len() <= 1 {
                return;
            }
            // Evict a quarter of the documents, so that all slots are rarely scanned.
            let mut ticks: Vec<u64> = self.by_path.values().map(|slot| slot.used).collect();
            ticks.sort_unstable();
            let oldest = ticks[ticks.len() / 4];
            self.by_path.retain(|_, slot| slot.used > oldest);
        }
    }
}

/// Hash for entity tags: equal tags mean equal bytes.
struct TagHash {
    hash: blake3::Hasher,
    /// State of the hash before the first byte.
    fresh: blake3::Hasher,
}

impl TagHash {
    fn new(path: &str) -> Self {
        let mut hash = blake3::Hasher::new();
        hash.update(path.as_bytes());
        let fresh = hash.clone();
        Self { hash, fresh }
    }

    /// Discards all bytes that were hashed.
    fn restart(&mut self) {
        self.hash.clone_from(&self.fresh);
    }

    /// Adds the next bytes to the hash.
    fn update(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
    }

    fn finish(self) -> String {
        short(self.hash.finalize())
    }
}

fn short(hash: blake3::Hash) -> String {
    let mut tag = String::with_capacity(24);
    for byte in &hash.as_bytes()[..12] {
        let _ = write!(tag, "{byte:02x}");
    }
    tag
}

/// Entity tag of bytes in memory, without quotes. The media type is part of the hash, because the
/// same bytes with another type are another representation [rfc9110 §8.8.3].
pub fn tag_of_bytes(media_type: &str, bytes: &[u8]) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(media_type.as_bytes()).update(b"\n").update(bytes);
    short(hash.finalize())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_answers_have_a_limit_together() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DocumentCache::new(folder.path().to_owned()).unwrap();
        let bytes = || vec![b'x'; SENT_FROM_MEMORY];
        let files = || fs::read_dir(folder.path()).unwrap().count();
        let body = cache.body(bytes()).unwrap();
        assert_eq!((body.length(), files()), (SENT_FROM_MEMORY as u64, 1));
        cache.sent.fetch_add(SENT_TOTAL - 2 * body.length() + 1, Ordering::Relaxed);
        let refused = cache.body(bytes()).unwrap_err();
        assert_eq!((refused.kind(), files()), (io::ErrorKind::QuotaExceeded, 1));
        assert!(matches!(cache.body(b"few".to_vec()).unwrap(), Body::Memory(_)));
        drop(body);
        assert_eq!(files(), 0);
        assert!(cache.body(bytes()).is_ok(), "there is room again");
    }

    #[test]
    fn tags_are_equal_only_for_the_same_bytes() {
        let tag = |parts: &[&[u8]]| {
            let mut hash = TagHash::new("/set/resourcelist.xml");
            for part in parts {
                hash.update(part);
            }
            hash.finish()
        };
        let (head, tail) = (vec![b'a'; 1 << 20], vec![b'b'; 1 << 20]);
        assert_eq!(tag(&[&head, &tail]), tag(&[&[head.clone(), tail.clone()].concat()]));
        assert_ne!(tag(&[&head, &tail]), tag(&[&head, &head]), "behind the first bytes");
        assert_ne!(tag_of_bytes("text/turtle", &head), tag_of_bytes("text/turtle", &tail));
        assert_ne!(tag_of_bytes("text/turtle", b""), tag_of_bytes("application/n-triples", b""));
    }
}
