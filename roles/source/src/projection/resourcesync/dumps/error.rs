//! Reasons why a dump or a package is not available.

use crate::made::Failure;
use crate::made::shared::SharedError;
use abreast_core::LogError;
use std::io;
use thiserror::Error;

/// The reason why a dump could not be made; earlier dumps remain.
#[derive(Debug, Error)]
pub(super) enum DumpError {
    #[error("stopped")]
    Cancelled,
    #[error("the set is being read for the first time")]
    Importing,
    #[error("cannot read the change log")]
    Log(#[from] LogError),
    #[error(
        "cannot write the package (help: a dump needs as much space as the resources, in addition to the dump that it replaces)"
    )]
    Write(#[source] io::Error),
    #[error(
        "`{key}` is published but cannot be packaged: {why} (help: a Resource Dump holds everything; make the file \
         readable, or remove it)"
    )]
    Unreadable { key: String, why: String },
    #[error(
        "cannot package `{0}`: its bytes are on another server, and a Resource Dump holds every resource of the set \
         (help: put records of such resources in a set of their own, without dumps)"
    )]
    Elsewhere(String),
    #[error("{0} resources changed while they were packaged; this set changes too fast for a dump")]
    TooLively(usize),
    #[error(
        "the bytes of a change to `{key}` are no longer available: {why} (help: let the set keep versions)"
    )]
    NotKept { key: String, why: String },
    #[error("cannot share the dump with other nodes")]
    Shared(#[from] SharedError),
}

impl Failure for DumpError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Cancelled | Self::Shared(SharedError::Stopped))
    }

    fn is_lasting(&self) -> bool {
        matches!(self, Self::Elsewhere(_))
    }
}

/// The reason why a package of the changes since a point is not available.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SinceError {
    /// The set does not have packages of changes on demand.
    #[error("this set offers no packages of changes on demand; read the Change List")]
    Disabled,
    /// The first scan of the set is not complete.
    #[error("the set is being read for the first time; retry when that is complete")]
    Importing,
    /// The position or time is after the last change.
    #[error("the requested point is after the last change, which is at position {position}")]
    Ahead {
        /// Position of the last change in the log.
        position: u64,
    },
    /// The time is before the beginning of the log.
    #[error(
        "the log of changes begins later, at {begins}; begin with the Resource List or the Resource Dump"
    )]
    TooOld {
        /// Time when the log begins.
        begins: String,
    },
    /// The changes exceed the limit of one package.
    #[error(
        "more changed since then than one package may hold ({limit} bytes, 50000 changes); read the Change List, or \
         begin again with the Resource List or the Resource Dump"
    )]
    TooLarge {
        /// Limit of one package in bytes.
        limit: u64,
    },
    /// Bytes of an earlier version are not stored, or are on another server.
    #[error(
        "the bytes of change {position} are not available: a later change of the resource followed and earlier versions are \
         not kept, or the resource is on another server; read the Change List, or request the changes since position \
         {position}"
    )]
    NotKept {
        /// Position of the last such change.
        position: u64,
    },
    /// The limit of packages that are made at a time is reached.
    #[error("other packages are being made; retry in a moment")]
    Busy,
    /// A file of the package is being changed.
    #[error("a resource is being changed; retry in a moment")]
    Unsettled,
    /// An error occurred while the package was made.
    #[error("the package could not be made")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}
