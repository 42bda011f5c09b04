//! Reasons why a service did not execute a request.

use crate::report::error::{Error, ExitCode};

/// Why a request was not carried out.
#[derive(Debug)]
pub(super) enum Refusal {
    /// No other request will be either.
    Endpoint(Error),
    /// Another request may be.
    Request(String),
}

impl Refusal {
    /// The error if no item caused the failure.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Endpoint(error) => error,
            Self::Request(message) => Error::new("sparql.failed", ExitCode::Retryable, message),
        }
    }
}

impl From<Error> for Refusal {
    /// The database of the copy cannot be used.
    fn from(error: Error) -> Self {
        Self::Endpoint(error)
    }
}

/// The error of a store that cannot be read or written any more.
#[cfg_attr(not(feature = "oxigraph"), expect(dead_code, reason = "no store without it"))]
pub(super) fn broken(cause: std::io::Error) -> Refusal {
    let is_full =
        matches!(cause.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
    let (code, help) = if is_full {
        ("disk.full", "free space, then run the same command again")
    } else {
        ("oxigraph.failed", "check the disk, then run the same command again")
    };
    Refusal::Endpoint(
        Error::new(code, ExitCode::Io, "the store cannot be used")
            .with_cause(cause)
            .with_help(help),
    )
}
