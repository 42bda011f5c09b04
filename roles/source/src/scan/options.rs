//! The options for reading and recording files.

use super::rest::Rest;
use super::writes::Writes;
use crate::links::Links;
use abreast_contents::Contents;
use std::sync::Arc;
use std::time::Duration;

/// The digests that a set publishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigestPolicy {
    /// MD5: the cheapest that the specifications name.
    #[default]
    Md5,
    /// SHA-256: about three times the cost of MD5 without hardware support.
    Sha256,
    /// Both.
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

/// The options for reading and recording files.
#[derive(Clone, Debug)]
pub struct IngestOptions {
    /// Digests to compute.
    pub digests: DigestPolicy,
    /// A file changed more recently than this is not read yet, unless it is known that no process
    /// has it open: one may still be writing it. Zero takes all files as they are.
    pub settle: Duration,
    /// The source of the links of files.
    pub links: Arc<Links>,
    /// The changes that others record in the same set.
    pub writes: Arc<Writes>,
    /// The store for a copy of each new content, made before the change is recorded.
    pub contents: Option<Contents>,
    /// Resources that are new in the set were there before it: its first ones.
    pub first: bool,
    /// What is known of files that may be written.
    pub rest: Arc<Rest>,
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
        }
    }
}
