//! Options for reading and recording files.

use super::rest::Rest;
use super::writes::Writes;
use crate::links::Links;
use abreast_core::contents::ContentStore;
use abreast_core::{Lease, Meter};
use std::sync::Arc;
use std::time::Duration;

/// Digests that a set publishes for each file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigestPolicy {
    /// MD5, the digest with the lowest cost of the digests in the specifications.
    #[default]
    Md5,
    /// SHA-256, which costs about three times as much as MD5 without hardware support.
    Sha256,
    /// Both MD5 and SHA-256 for each file.
    Both,
}

impl DigestPolicy {
    pub(crate) const fn md5(self) -> bool {
        matches!(self, Self::Md5 | Self::Both)
    }

    pub(crate) const fn sha256(self) -> bool {
        matches!(self, Self::Sha256 | Self::Both)
    }
}

/// Options for reading and recording files, with references to shared state.
#[derive(Clone, Debug)]
pub struct IngestOptions {
    /// Digests to compute for each file.
    pub digests: DigestPolicy,
    /// Minimum time since the last change of a file that is read, unless no process has the file
    /// open. A process may still be writing a more recent file. Zero reads all files immediately.
    pub settle: Duration,
    /// Source of the links of files.
    pub links: Arc<Links>,
    /// Count of the changes that are not recorded by the watch.
    pub writes: Arc<Writes>,
    /// Store for a copy of each new content, made before the change is recorded; `None` for sets
    /// without versions.
    pub contents: Option<Arc<dyn ContentStore>>,
    /// Whether new resources belong to the initial state of the set, which existed before the set
    /// was created.
    pub first: bool,
    /// Information about files that a process may be writing.
    pub rest: Arc<Rest>,
    /// Shows how far a scan of a whole folder is.
    pub meter: Meter,
    /// The lease of the watch, if several nodes share the store.
    pub lease: Lease,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            digests: DigestPolicy::default(),
            settle: Duration::from_secs(1),
            links: Arc::default(),
            writes: Arc::default(),
            contents: None,
            first: false,
            rest: Arc::default(),
            meter: Meter::default(),
            lease: Lease::always(),
        }
    }
}
