//! Rendered documents, in memory or in files.

use super::document::Freshness;
use super::set::PublishedSet;
use abreast_webtypes::Timestamp;
use bytes::Bytes;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The bytes of one encoding of a document.
#[derive(Clone, Debug)]
pub enum Body {
    /// Bytes of a body that is small enough to be cached in memory.
    Memory(Bytes),
    /// File in the cache folder; readable until this value is dropped.
    File(Arc<CacheFile>),
}

impl Body {
    /// Length of the body in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => file.length,
        }
    }
}

/// A file in the cache folder, removed when the last user drops this value.
#[derive(Debug)]
pub struct CacheFile {
    pub(super) path: PathBuf,
    pub(super) length: u64,
    /// Counter of the bytes of all files made for one request; `None` for a cached document.
    pub(super) sent: Option<Arc<AtomicU64>>,
}

impl CacheFile {
    /// The path of the file in the cache folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for CacheFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        if let Some(sent) = &self.sent {
            sent.fetch_sub(self.length, Ordering::Relaxed);
        }
    }
}

/// A document ready to be sent.
#[derive(Debug)]
pub struct Document {
    /// Value of the `Content-Type` header.
    pub content_type: &'static str,
    /// The part of the entity tag that both encodings share, without quotes.
    pub tag: String,
    /// Time since which the document has had these bytes in this process; `None` for a document
    /// that was rendered for one request.
    pub modified: Option<Timestamp>,
    /// How long clients may cache the document.
    pub freshness: Freshness,
    /// Media types with which the bytes may be sent, the default first; empty if there is one media
    /// type only.
    pub media_types: &'static [&'static str],
    /// Media type of the alternative form of the document, and the suffix of its path.
    pub other_form: Option<(&'static str, &'static str)>,
    /// Sets to which a response with the document has links.
    pub introduces: Vec<Arc<PublishedSet>>,
    /// Whether a client that asks for the document asks for the newest changes of its set.
    pub is_newest: bool,
    /// `Link` header with the topic for changes of the document, and the hubs of the topic.
    pub topic: Option<String>,
    pub(super) plain: Body,
    pub(super) gzip: OnceLock<Body>,
    /// Lock for the thread that compresses the document.
    pub(super) compressing: Mutex<()>,
}

impl Document {
    /// Uncompressed bytes of the document.
    pub fn plain(&self) -> &Body {
        &self.plain
    }

    /// Bytes in gzip, if the document has already been compressed.
    pub fn gzip_if_ready(&self) -> Option<&Body> {
        self.gzip.get()
    }
}
