//! Errors of notifications.

use crate::publish::PublishError;
use abreast_core::LogError;
use std::io;
use thiserror::Error;

/// An error while notifications were started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NotifyError {
    /// A log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A document could not be made.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The file of what was notified before cannot be read or written.
    #[error("cannot read or write the record of notifications")]
    Record(#[source] io::Error),
    /// The system cannot start a thread.
    #[error("cannot start the thread of the notifier")]
    Thread(#[source] io::Error),
}
