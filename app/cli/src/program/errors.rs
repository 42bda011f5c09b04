//! Errors with their own exit codes, which `exit.rs` defines.

use thiserror::Error;

/// Wrong arguments or configuration: all errors, one per line.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// A failure with its own exit code.
#[derive(Debug, Error)]
#[error("{message}")]
pub(crate) struct ExitCodeError {
    pub(crate) message: String,
    pub(crate) code: u8,
}

/// A secret that would be sent to several servers. The secret must not be sent to any of these servers.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct SecretForSeveral(pub(crate) String);

/// A secret, or another file of an option, that is not available: a job cannot run, and others can.
#[derive(Debug, Error)]
#[error("`--{}`: {text}", option.replace('_', "-"))]
pub(crate) struct SecretError {
    /// The key of the option.
    pub(crate) option: &'static str,
    pub(crate) text: String,
    /// This user may not read the file.
    pub(crate) is_denied: bool,
}
