//! Errors of the publisher.

use abreast_core::LogError;
use std::io;
use thiserror::Error;

/// A document could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PublishError {
    /// There is no such document.
    #[error("no such document")]
    NotFound,
    /// There was such a document; its reader should start again at the index.
    #[error("this list was split into smaller ones; read the index again")]
    Gone,
    /// The set is being read for the first time.
    #[error("the set is being read for the first time; its lists follow when that is complete")]
    Importing,
    /// The Resource Dump or a snapshot is being made.
    #[error("this is being made; retry when it is complete")]
    Making,
    /// The last attempt to make the Resource Dump failed.
    #[error("{reason}")]
    NotMade {
        /// The fault of the last attempt, for people.
        reason: String,
        /// Seconds until it may be asked for again.
        seconds: u32,
    },
    /// What it is made of is no longer kept.
    #[error("the description before this change is no longer kept; read the entity as it is now")]
    NotKept,
    /// The document is at another URL.
    #[error("this is at {0}")]
    Elsewhere(String),
    /// A kept description cannot be read.
    #[error("a kept description cannot be read")]
    Contents(#[source] io::Error),
    /// The query of the request cannot be answered; the text is for the client.
    #[error("{0}")]
    BadQuery(String),
    /// The log of the set could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file of the document cache could not be written or read.
    #[error("the document cache failed")]
    Cache(#[source] io::Error),
}
