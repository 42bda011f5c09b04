//! Kinds of failures of a database, for programs that react to them.

use abreast_core::LogError;
use thiserror::Error;

/// The kind of a database's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatabaseProblem {
    /// The database cannot be reached, or cannot serve now. Another attempt later may succeed.
    Unreachable,
    /// No secure connection could be made.
    Insecure,
    /// The server refused the user, the password, or an operation of this user.
    Denied,
    /// The URL is wrong, or the database does not exist or has another encoding.
    Unusable,
    /// Any failure of another kind.
    Other,
}

/// A failure of a database: the cause of a [`LogError`] of the stores on PostgreSQL.
#[derive(Clone, Debug, Error)]
#[error("{text}")]
pub struct DatabaseError {
    problem: DatabaseProblem,
    text: String,
}

impl DatabaseError {
    pub(crate) const fn new(problem: DatabaseProblem, text: String) -> Self {
        Self { problem, text }
    }

    /// The kind of the failure.
    pub const fn problem(&self) -> DatabaseProblem {
        self.problem
    }
}

/// Whether a secure connection failed. The library does not distinguish this in another way.
pub(crate) fn is_tls(error: &tokio_postgres::Error) -> bool {
    error.to_string().contains("TLS handshake")
}

/// Whether the login failed on this side: a password is missing, or its exchange failed.
pub(crate) fn is_login(error: &tokio_postgres::Error) -> bool {
    let is_missing = std::error::Error::source(error)
        .is_some_and(|cause| cause.to_string() == "password missing");
    is_missing || error.to_string().starts_with("authentication error")
}

/// A copy of a failure, with its kind of a database's failure.
pub(crate) fn copy_of(failure: &LogError) -> LogError {
    let copy = LogError::new(failure.kind(), failure.to_string());
    let cause = std::error::Error::source(failure).and_then(|cause| cause.downcast_ref());
    match cause {
        Some(cause) => copy.with_cause(DatabaseError::clone(cause)),
        None => copy,
    }
}
