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
    /// Bytes of a body that is small enough for memory.
    Memory(Bytes),
    /// In the cache folder; stays readable while this value lives.
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

/// A file of the cache folder, removed with its last user.
#[derive(Debug)]
pub struct CacheFile {
    pub(super) path: PathBuf,
    pub(super) length: u64,
    /// Counts it, if it was made for one request.
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
    /// The value of the `Content-Type` header.
    pub content_type: &'static str,
    /// The part of the entity tag that both encodings share, without quotes.
    pub tag: String,
    /// When it became what it is now, since the process began.
    pub modified: Option<Timestamp>,
    /// How long clients may keep it.
    pub freshness: Freshness,
    /// The media types as which its bytes may be sent, the usual one first; empty if there is only
    /// the one.
    pub media_types: &'static [&'static str],
    /// Another form of it: its media type, and what is added to the path for it.
    pub other_form: Option<(&'static str, &'static str)>,
    /// The sets to which an answer with it links.
    pub introduces: Vec<Arc<PublishedSet>>,
    /// The topic that notifies of its changes, and its hubs, as a `Link` header.
    pub topic: Option<String>,
    pub(super) plain: Body,
    pub(super) gzip: OnceLock<Body>,
    /// Held by the one that compresses it.
    pub(super) compressing: Mutex<()>,
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
