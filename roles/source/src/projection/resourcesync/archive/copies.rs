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

/// One copy of a Resource List.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// 1 for the first of the set.
    pub number: u64,
    /// The list includes every change up to this time.
    pub at: Timestamp,
    /// When it was complete, if something changed meanwhile; such changes may be included or not.
    pub completed: Option<Timestamp>,
    /// When it was taken.
    pub taken: Timestamp,
    /// The last change when it was begun.
    pub(crate) position: Position,
    /// Its parts, if it is an index.
    pub(crate) parts: Vec<Part>,
}

impl Snapshot {
    /// Its parts, if it is an index.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// A list of one shard, kept once for all copies in which it is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// Its shard.
    pub shard: ShardId,
    /// Its last change.
    pub version: Position,
    /// The number of the copy for which it was made.
    pub number: u64,
    /// The time of that change.
    pub time: Timestamp,
}

/// Reads a list or a part. Damage to it is an error, as its checksum is another one then.
pub(super) fn read_document(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // This program wrote the file: it holds at most one document.
    let document = flate2::read::GzDecoder::new(fs::File::open(path)?);
    document.take(MAX_DOCUMENT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// An archive could not be kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The log failed, or the list cannot be made now.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// A file failed.
    #[error("cannot keep an archived list in `{0}`")]
    Io(PathBuf, #[source] io::Error),
    /// Stopped by its owner.
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
