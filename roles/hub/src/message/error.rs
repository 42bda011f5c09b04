//! Errors of the hub.

use abreast_core::LogError;
use thiserror::Error;

/// The reason why a hub cannot be started or used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HubError {
    /// The URL for the hub is not usable.
    #[error(
        "the hub's URL `{url}` cannot be used: {reason}\n  help: give the address under which subscribers reach it"
    )]
    Url {
        /// The URL that was given.
        url: String,
        /// The reason why it cannot be used.
        reason: String,
    },
    /// An operation of the hub's store failed.
    #[error("the hub's store failed")]
    Store(#[from] LogError),
    /// The HTTP client for deliveries cannot be created.
    #[error("the hub cannot send messages")]
    Net(#[from] abreast_net::Error),
    /// The hub's thread cannot be started.
    #[error("the hub's thread cannot be started")]
    Thread(#[source] std::io::Error),
}
