//! Copies of a Resource List, and their parts.

use crate::made::Failure;
use crate::publish::PublishError;
use abreast_core::{LogError, Position, ShardId};
use abreast_webtypes::Timestamp;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{fs, io};
use thiserror::Error;

/// A document has at most 50 MB.
pub(super) const MAX_DOCUMENT: u64 = 64 * 1024 * 1024;

/// One archived copy of a Resource List.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Number of the copy, counted from 1 in each set.
    pub number: u64,
    /// Time up to which the list includes every change.
    pub at: Timestamp,
    /// Time when the copy was complete, if the set changed meanwhile. The copy may include such
    /// changes or not.
    pub completed: Option<Timestamp>,
    /// Time when the copy was made.
    pub taken: Timestamp,
    /// Position of the last change when the copy was started.
    pub(crate) position: Position,
    /// Parts of the list, if it is an index.
    pub(crate) parts: Vec<Part>,
}

impl Snapshot {
    /// Parts of the list, if the copy is an index.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// A list of one shard, stored once for all copies with the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// Shard of the set that the list describes.
    pub shard: ShardId,
    /// Position of the last change in the list.
    pub version: Position,
    /// Number of the copy for which the part was made.
    pub number: u64,
    /// Time of the last change in the list.
    pub time: Timestamp,
}

/// Reads a list or a part. Damage is an error, because the checksum in the file differs.
pub(super) fn read_document(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // This program wrote the file, which has at most one document.
    let document = flate2::read::GzDecoder::new(fs::File::open(path)?);
    document.take(MAX_DOCUMENT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The reason why a copy could not be stored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The log failed, or the list cannot be rendered now.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// A file of the archive cannot be read or written.
    #[error("cannot keep an archived list in `{0}`")]
    Io(PathBuf, #[source] io::Error),
    /// The copy cannot be shared with other nodes.
    #[error("cannot share the archived list with other nodes")]
    Shared(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The caller stopped the copying.
    #[error("stopped before the list was archived")]
    Stopped,
}

impl Failure for ArchiveError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped)
    }
}

impl From<LogError> for ArchiveError {
    fn from(error: LogError) -> Self {
        Self::Publish(error.into())
    }
}
