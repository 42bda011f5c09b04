//! Which rendered documents are kept, where, and until when?
//!
//! One document is rendered at a time, so memory holds one shard's bytes at most (about 10 MB). Small documents
//! stay in memory, larger ones in files of the cache folder; both within limits, the least used leave first.

use super::{DocumentPath, PublishError, Rendered, Version};
use abreast_webtypes::Timestamp;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Documents up to this size stay in memory.
const MEMORY_DOCUMENT: usize = 1024 * 1024;
/// All documents in memory together.
const MEMORY_TOTAL: u64 = 12 * 1024 * 1024;
/// All documents in files together.
const DISK_TOTAL: u64 = 1024 * 1024 * 1024;

/// How long may a document be kept without asking again?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// For ever: its bytes never change.
    Immutable,
    /// Ask each time; the answer is usually 304.
    Revalidate,
}

/// The bytes of one encoding of a document.
#[derive(Clone, Debug)]
pub enum Body {
    /// Small enough for memory.
    Memory(Bytes),
    /// In the cache folder; stays readable while this value lives.
    File(Arc<CacheFile>),
}

impl Body {
    /// Bytes in the body.
    pub fn length(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => file.length,
        }
    }
}

/// A file of the cache folder, removed with its last user.
#[derive(Debug)]
pub struct CacheFile {
    path: PathBuf,
    length: u64,
}

impl CacheFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for CacheFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A document ready to be sent.
#[derive(Debug)]
pub struct Document {
    /// Content-Type.
    pub content_type: &'static str,
    /// The part of the entity tag that both encodings share, without quotes.
    pub tag: String,
    /// Last-Modified, if the document has one.
    pub modified: Option<Timestamp>,
    /// How long it may be kept.
    pub freshness: Freshness,
    plain: Body,
    gzip: OnceLock<Body>,
}

impl Document {
    /// The bytes as they are.
    pub fn plain(&self) -> &Body {
        &self.plain
    }

    /// The bytes in gzip, if they were compressed before.
    pub fn gzip_if_ready(&self) -> Option<&Body> {
        self.gzip.get()
    }
}

struct Slot {
    version: Version,
    document: Arc<Document>,
    used: u64,
}

#[derive(Default)]
struct Slots {
    by_path: HashMap<DocumentPath, Slot>,
    tick: u64,
}

pub(crate) struct DocumentCache {
    folder: PathBuf,
    slots: Mutex<Slots>,
    rendering: Mutex<()>,
    file_number: AtomicU64,
}

impl DocumentCache {
    pub(crate) fn new(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            // Whatever else is there belongs to somebody else.
            if is_own_name(&entry.file_name()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Self { folder, slots: Mutex::default(), rendering: Mutex::default(), file_number: AtomicU64::new(0) })
    }

    /// The document, if it is of this version.
    pub(crate) fn fresh(&self, path: &DocumentPath, version: &Version) -> Option<Arc<Document>> {
        let mut slots = lock(&self.slots);
        slots.tick += 1;
        let tick = slots.tick;
        let slot = slots.by_path.get_mut(path).filter(|slot| slot.version == *version)?;
        slot.used = tick;
        Some(Arc::clone(&slot.document))
    }

    pub(crate) fn get_or_render(
        &self,
        path: &DocumentPath,
        version: &Version,
        render: impl FnOnce() -> Result<Rendered, PublishError>,
    ) -> Result<Arc<Document>, PublishError> {
        if let Some(document) = self.fresh(path, version) {
            return Ok(document);
        }
        let _one_at_a_time = lock(&self.rendering);
        if let Some(document) = self.fresh(path, version) {
            return Ok(document);
        }
        let rendered = render()?;
        let document = Arc::new(Document {
            content_type: rendered.content_type,
            tag: tag_of(path, version, &rendered.bytes),
            modified: rendered.modified,
            freshness: if version.immutable { Freshness::Immutable } else { Freshness::Revalidate },
            plain: self.keep(rendered.bytes).map_err(PublishError::Cache)?,
            gzip: OnceLock::new(),
        });
        let mut slots = lock(&self.slots);
        slots.tick += 1;
        let used = slots.tick;
        slots.by_path.insert(*path, Slot { version: *version, document: Arc::clone(&document), used });
        slots.shrink();
        Ok(document)
    }

    /// The document's bytes in gzip, compressed once.
    pub(crate) fn gzip(&self, document: &Document) -> io::Result<Body> {
        if let Some(body) = document.gzip.get() {
            return Ok(body.clone());
        }
        let _one_at_a_time = lock(&self.rendering);
        if let Some(body) = document.gzip.get() {
            return Ok(body.clone());
        }
        let mut encoder = GzEncoder::new(Vec::with_capacity(document.plain.length() as usize / 6), Compression::fast());
        match &document.plain {
            Body::Memory(bytes) => encoder.write_all(bytes)?,
            Body::File(file) => {
                io::copy(&mut fs::File::open(&file.path)?, &mut encoder)?;
            }
        }
        let body = self.keep(encoder.finish()?)?;
        let body = document.gzip.get_or_init(|| body).clone();
        lock(&self.slots).shrink();
        Ok(body)
    }

    fn keep(&self, bytes: Vec<u8>) -> io::Result<Body> {
        if bytes.len() <= MEMORY_DOCUMENT {
            return Ok(Body::Memory(bytes.into()));
        }
        let number = self.file_number.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{number}.document"));
        let file = Arc::new(CacheFile { path, length: bytes.len() as u64 });
        let written = match fs::write(&file.path, &bytes) {
            // The folder was removed while the program runs.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&self.folder).and_then(|()| fs::write(&file.path, &bytes))
            }
            written => written,
        };
        written?;
        Ok(Body::File(file))
    }
}

/// Is this the name of a document kept by this or an earlier process?
fn is_own_name(name: &std::ffi::OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_suffix(".document"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Slots {
    fn shrink(&mut self) {
        loop {
            let (mut memory, mut disk) = (0, 0);
            for slot in self.by_path.values() {
                for body in [Some(&slot.document.plain), slot.document.gzip.get()].into_iter().flatten() {
                    match body {
                        Body::Memory(bytes) => memory += bytes.len() as u64 + 256,
                        Body::File(file) => disk += file.length,
                    }
                }
            }
            if (memory <= MEMORY_TOTAL && disk <= DISK_TOTAL) || self.by_path.len() <= 1 {
                return;
            }
            // Drop the least used quarter: a walk of all slots then happens seldom.
            let mut ticks: Vec<u64> = self.by_path.values().map(|slot| slot.used).collect();
            ticks.sort_unstable();
            let oldest = ticks[ticks.len() / 4];
            self.by_path.retain(|_, slot| slot.used > oldest);
        }
    }
}

/// Same tag, same bytes: for ever for what is versioned, by content for what only the configuration decides.
fn tag_of(path: &DocumentPath, version: &Version, bytes: &[u8]) -> String {
    use md5::{Digest as _, Md5};
    use std::fmt::Write as _;
    let mut hash = Md5::new();
    hash.update(format!("{path:?}"));
    if version.immutable || bytes.len() < MEMORY_DOCUMENT {
        hash.update(bytes);
    } else {
        hash.update(format!("{:?}", version.of));
        hash.update(&bytes[..1024]);
    }
    let mut tag = String::with_capacity(24);
    for byte in &hash.finalize()[..12] {
        let _ = write!(tag, "{byte:02x}");
    }
    tag
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
