//! Errors at the start of the notifier.

use crate::publish::PublishError;
use abreast_core::LogError;
use std::io;
use thiserror::Error;

/// Error at the start of the notifier.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NotifyError {
    /// The change log or a topic log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A document cannot be generated.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The state file of the notifier cannot be read or written.
    #[error("cannot read or write the record of notifications")]
    Record(#[source] io::Error),
    /// The system cannot start a thread.
    #[error("cannot start the thread of the notifier")]
    Thread(#[source] io::Error),
}
