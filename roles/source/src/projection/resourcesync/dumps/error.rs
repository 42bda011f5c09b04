//! The reasons why there is no dump.

use abreast_core::LogError;
use std::io;
use thiserror::Error;

/// A dump could not be made; what was made before stays.
#[derive(Debug, Error)]
pub(super) enum DumpError {
    #[error("told to stop")]
    Cancelled,
    #[error("the set is being read for the first time")]
    Importing,
    #[error("cannot read the change log")]
    Log(#[from] LogError),
    #[error("cannot write the package (help: a dump needs as much room as the resources, beside the one it replaces)")]
    Write(#[source] io::Error),
    #[error(
        "`{key}` is published but cannot be packaged: {why} (help: a Resource Dump holds everything; make the file \
         readable, or remove it)"
    )]
    Unreadable { key: String, why: String },
    #[error(
        "the set has `{0}`, which lives elsewhere, so there are no bytes of it to package; a Resource Dump without it would \
         not be of this set (help: put such records in a set of their own, without dumps)"
    )]
    Elsewhere(String),
    #[error("{0} resources changed while they were packaged; this set changes too fast for a dump")]
    TooLively(usize),
    #[error("the bytes of a change to `{key}` are not there any more: {why} (help: let the set keep versions)")]
    NotKept { key: String, why: String },
}

/// Why there is no package of what changed since then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SinceError {
    /// This set offers none.
    #[error("this set offers no packages of changes on demand; read the Change List")]
    Disabled,
    /// The set is being read for the first time.
    #[error("the set is being read for the first time; ask again when that is complete")]
    Importing,
    /// The position or time lies behind the last change.
    #[error("no change is so late: the last one is at position {position}")]
    Ahead {
        /// The last position.
        position: u64,
    },
    /// The time lies before the log's beginning.
    #[error("the log of changes begins later, at {begins}; begin with the Resource List or the Resource Dump")]
    TooOld {
        /// When the log begins.
        begins: String,
    },
    /// More changed than one package may hold.
    #[error(
        "more changed since then than one package may hold ({limit} bytes, 50000 changes); read the Change List, or \
         begin again with the Resource List or the Resource Dump"
    )]
    TooLarge {
        /// Bytes that one may hold.
        limit: u64,
    },
    /// Bytes of an earlier version are not kept, or were never here.
    #[error(
        "the bytes of change {position} are not here: a later change followed it and they are not kept any more, or the \
         resource lives elsewhere; read the Change List, or \
         ask for what changed since position {position}"
    )]
    NotKept {
        /// Position of the last such change.
        position: u64,
    },
    /// As many as allowed are being made.
    #[error("other packages are being made; ask again in a moment")]
    Busy,
    /// A file is just being changed.
    #[error("a resource is just being changed; ask again in a moment")]
    Unsettled,
    /// It could not be made.
    #[error("the package could not be made")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}
