//! Errors of the publisher.

use abreast_core::LogError;
use std::io;
use thiserror::Error;

/// The reason why a document could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The document does not exist.
    #[error("no such document")]
    NotFound,
    /// The document existed; clients should read the index again.
    #[error("this list was split into smaller ones; read the index again")]
    Gone,
    /// The first scan of the set is not complete.
    #[error("the set is being read for the first time; its lists follow when that is complete")]
    Importing,
    /// The Resource Dump or a snapshot is being made.
    #[error("this is being made; retry when it is complete")]
    Making,
    /// The last attempt to make the Resource Dump failed, or an object store is out of reach.
    #[error("{reason}")]
    NotMade {
        /// The reason, in words for people.
        reason: String,
        /// Seconds until the client may retry.
        seconds: u32,
    },
    /// The earlier description from which the document is made was deleted.
    #[error("the description before this change is no longer kept; read the entity as it is now")]
    NotKept,
    /// The document has moved to this URL.
    #[error("this is at {0}")]
    Elsewhere(String),
    /// A stored description cannot be read.
    #[error("a kept description cannot be read")]
    Contents(#[source] io::Error),
    /// The query of the request is not supported; the text is for the client.
    #[error("{0}")]
    BadQuery(String),
    /// The log of the set could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file of the document cache could not be written or read.
    #[error("the document cache failed")]
    Cache(#[source] io::Error),
}
