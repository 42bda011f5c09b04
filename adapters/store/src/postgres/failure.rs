//! Failures of statements, and whether an attempt later may succeed.

use crate::postgres::problem::{DatabaseError, DatabaseProblem, is_login, is_tls};
use abreast_core::{ErrorKind, LogError};
use deadpool_postgres::{PoolError, TimeoutType};
use std::fmt;
use tokio_postgres::error::{DbError, SqlState};

/// Classes and states after which a commit may have been done: the connection, a server that shuts
/// down, an unknown completion.
const UNKNOWN: [&str; 3] = ["08", "57P", "40003"];

/// Failure of a statement on PostgreSQL.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database, or the connection to it.
    Database(tokio_postgres::Error),
    /// No connection is available.
    Pool(PoolError),
    /// The database did not answer in time.
    Late,
    /// A row cannot be read.
    Damaged(String),
}

impl Failure {
    /// Whether the same work may succeed later, on another connection or server: the database is
    /// restarting, out of reach, or ended the transaction in favour of another one.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Database(error) | Self::Pool(PoolError::Backend(error)) => match error.code() {
                None => error.is_closed() || is_network(error),
                Some(code) => is_passing(code),
            },
            Self::Pool(PoolError::Timeout(_)) | Self::Late => true,
            Self::Pool(_) | Self::Damaged(_) => false,
        }
    }

    /// Whether the server answered that it did not do the work. A server that is shutting down may
    /// have done the work nevertheless.
    pub(crate) fn is_refusal(&self) -> bool {
        let Self::Database(error) = self else { return false };
        error.code().is_some_and(|code| !UNKNOWN.iter().any(|class| code.code().starts_with(class)))
    }

    /// Advice for failures that the operator of the database can remove.
    fn help(&self) -> Option<&'static str> {
        let (Self::Pool(PoolError::Backend(error)) | Self::Database(error)) = self else {
            return None;
        };
        let Some(code) = error.code() else {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            let cause = cause.unwrap_or_default();
            if cause.contains("invalid peer certificate") {
                return Some(
                    "\n  help: name the certificate of its authority as `ca_file`, and the host as in the certificate",
                );
            }
            if cause.contains("does not support TLS") {
                return Some(
                    "\n  help: switch TLS on in the server (`ssl = on`), or remove `sslmode=require` from the URL",
                );
            }
            return is_login(error)
                .then_some("\n  help: check the user in the URL, and `password_file`");
        };
        Some(match code.code() {
            "28P01" | "28000" => "\n  help: check the user in the URL, and `password_file`",
            "3D000" => {
                "\n  help: create it: createdb --owner=USER --encoding=UTF8 --template=template0 NAME"
            }
            "42501" => "\n  help: make the user the owner: ALTER DATABASE NAME OWNER TO USER",
            _ => return None,
        })
    }

    /// The failure as an error of the log, after the words `doing`.
    pub(crate) fn into_error(self, doing: &str) -> LogError {
        let passing = self.is_passing();
        let (kind, why) = match &self {
            Self::Damaged(why) => (ErrorKind::Corrupt, why.clone()),
            Self::Late => {
                (ErrorKind::Unavailable, "the database did not answer in time".to_owned())
            }
            Self::Pool(PoolError::Timeout(TimeoutType::Wait)) => {
                (ErrorKind::Busy, "no connection to the database became free in time".to_owned())
            }
            Self::Pool(PoolError::Timeout(_)) => (
                ErrorKind::Unavailable,
                "the database did not answer a new connection in time".to_owned(),
            ),
            Self::Pool(PoolError::Backend(error)) | Self::Database(error) => {
                let kind = match error.code() {
                    Some(&SqlState::DISK_FULL) => ErrorKind::Full,
                    _ if passing => ErrorKind::Unavailable,
                    _ => ErrorKind::Io,
                };
                (kind, explain(error))
            }
            Self::Pool(error) => (ErrorKind::Io, error.to_string()),
        };
        let help = self.help().unwrap_or(if passing { "\n  help: try again later" } else { "" });
        LogError::new(kind, format!("{doing}: {why}{help}"))
            .with_cause(DatabaseError::new(problem_of(&self), why))
    }
}

/// The kind of a failure.
fn problem_of(failure: &Failure) -> DatabaseProblem {
    let error = match failure {
        Failure::Database(error) | Failure::Pool(PoolError::Backend(error)) => error,
        Failure::Damaged(_) => return DatabaseProblem::Other,
        Failure::Late | Failure::Pool(_) => return DatabaseProblem::Unreachable,
    };
    match error.code().map(SqlState::code) {
        Some("3D000") => DatabaseProblem::Unusable,
        Some("42501") => DatabaseProblem::Denied,
        Some(code) if code.starts_with("28") => DatabaseProblem::Denied,
        Some(_) | None if failure.is_passing() => DatabaseProblem::Unreachable,
        None if is_tls(error) => DatabaseProblem::Insecure,
        None if is_login(error) => DatabaseProblem::Denied,
        Some(_) | None => DatabaseProblem::Other,
    }
}

/// Whether the network failed, and not the program or its configuration.
fn is_network(error: &tokio_postgres::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    // A refused certificate is invalid data of the connection.
    cause.is_some_and(|cause: &std::io::Error| {
        !is_tls(error) || cause.kind() != std::io::ErrorKind::InvalidData
    })
}

/// The message of a server, or the cause of a failed connection.
fn explain(error: &tokio_postgres::Error) -> String {
    if let Some(database) = error.as_db_error() {
        return explain_database(database);
    }
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn explain_database(error: &DbError) -> String {
    let code = error.code().code();
    // The detail of a violated constraint has the row, and so secrets of subscriptions.
    match error.detail().filter(|_| !code.starts_with("23")) {
        Some(detail) => format!("{} ({detail}; SQLSTATE {code})", error.message()),
        None => format!("{} (SQLSTATE {code})", error.message()),
    }
}

/// Whether a state of SQL is passing: class 08 (connection), 40 (rollback by the server), 53
/// (resources) but for a full disk, 57P (shutdown, start), a timeout of a lock or of an idle
/// transaction, and a server that became read-only during a failover.
fn is_passing(code: &SqlState) -> bool {
    let text = code.code();
    let is_class = ["08", "40", "53", "57P"].iter().any(|class| text.starts_with(class));
    let is_state = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::QUERY_CANCELED,
    ]
    .contains(code);
    (is_class || is_state) && *code != SqlState::DISK_FULL
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(error) => f.write_str(&explain(error)),
            Self::Pool(error) => error.fmt(f),
            Self::Late => f.write_str("the database did not answer in time"),
            Self::Damaged(why) => f.write_str(why),
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        Self::Pool(error)
    }
}
