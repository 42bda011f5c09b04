//! Errors, with help texts.

use abreast_webtypes::help_line;

/// Kinds of failures, for callers to match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An address or a setting is wrong.
    Usage,
    /// The server cannot be reached, or ended the connection.
    Connection,
    /// The connection is not secure: an invalid certificate, or no TLS at all.
    Tls,
    /// The server does not accept the account or its password.
    Login,
    /// The server did not answer in time.
    Timeout,
    /// The account does not have the permission.
    Forbidden,
    /// The node or the service does not exist.
    NotFound,
    /// The node does not have the properties that the request needs.
    Conflict,
    /// The payload is too large for the server or for our own limits.
    TooLarge,
    /// The service cannot do it at this moment.
    Unavailable,
    /// The service refuses for another reason.
    Refused,
    /// The received data violates the protocol.
    Protocol,
}

/// A failure with its reason. Texts of servers in the message are on one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", help_line(*help))]
pub struct Error {
    kind: ErrorKind,
    message: String,
    help: Option<&'static str>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), help: None }
    }

    pub(crate) fn with_help(mut self, help: &'static str) -> Self {
        self.help = Some(help);
        self
    }

    /// The kind of failure, for the caller's decision.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Adds the failed task to the message, and a help text if the failure does not have one.
    pub(crate) fn about(self, task: impl std::fmt::Display, help: Option<&'static str>) -> Self {
        let message = format!("{task}: {}", self.message);
        Self { message, help: self.help.or(help), ..self }
    }

    /// What failed and why, in one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Help text for the user, if there is one.
    pub fn help(&self) -> Option<&'static str> {
        self.help
    }

    /// Whether a later attempt may succeed with the same settings.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, ErrorKind::Connection | ErrorKind::Timeout | ErrorKind::Unavailable)
    }
}
