//! Errors of the hub.

use abreast_core::LogError;
use thiserror::Error;

/// A hub could not be started, or asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HubError {
    /// The hub's own URL cannot be one.
    #[error(
        "the hub's URL `{url}` cannot be used: {reason}\n  help: give the address under which subscribers reach it"
    )]
    Url {
        /// As it was given.
        url: String,
        /// The error.
        reason: String,
    },
    /// The store failed.
    #[error("the hub's store failed")]
    Store(#[from] LogError),
    /// Messages cannot be sent.
    #[error("the hub cannot send messages")]
    Net(#[from] abreast_net::Error),
    /// The hub's thread cannot be started.
    #[error("the hub's thread cannot be started")]
    Thread(#[source] std::io::Error),
}
