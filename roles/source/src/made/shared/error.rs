//! Reasons why a shared file cannot be published or read.

use abreast_core::contents::{Error, ErrorKind};
use std::io;
use thiserror::Error as ThisError;

/// Seconds after which a client may request a file again that cannot be read now.
const RETRY: u32 = 5;

/// The reason why a shared file cannot be published or read.
#[derive(Debug, ThisError)]
pub(crate) enum SharedError {
    #[error(transparent)]
    Store(#[from] Error),
    #[error("the object store did not answer a moment ago")]
    Away,
    #[error("other files are being fetched from the object store")]
    Fetching,
    #[error("cannot write a local copy of a shared file")]
    Local(#[from] io::Error),
    #[error("cannot read the record of shared files: {0}")]
    Record(String),
    #[error("other nodes change the record of `{0}` all the time")]
    Contended(String),
    #[error("making took longer than {0} hours, and its files may have been removed")]
    TooSlow(u64),
    #[error("another node makes these files")]
    NotMine,
    #[error("another node has published a file meanwhile")]
    Published,
    #[error("the program ends")]
    Stopped,
}

impl SharedError {
    /// Whether another node makes the file, which is not a failure of this node.
    pub(crate) fn is_of_another(&self) -> bool {
        matches!(self, Self::NotMine | Self::Published)
    }

    /// Whether the local disk is full.
    pub(crate) fn is_of_full_disk(&self) -> bool {
        match self {
            Self::Store(error) => error.kind() == ErrorKind::Full,
            Self::Local(error) => {
                matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }

    /// Seconds after which a client may retry, if the cause passes.
    pub(crate) fn retry(&self) -> Option<u32> {
        let passes = match self {
            Self::Store(error) => error.kind() == ErrorKind::Busy,
            Self::Away | Self::Fetching | Self::Contended(_) => true,
            _ => false,
        };
        passes.then_some(RETRY)
    }
}
