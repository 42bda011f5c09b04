//! Errors that stop a run, with the exit code of each.

use abreast_webtypes::help_line;

/// Exit codes of a run, as the program's documentation lists them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitCode {
    /// The run did all its work.
    #[default]
    Ok,
    /// An error without a separate code; for audits: the copy differs.
    Other,
    /// Options that do not make sense together or for this folder.
    Usage,
    /// Some resources could not be kept up to date.
    Partial,
    /// The documents of the Source cannot be used.
    SourceInvalid,
    /// A transient failure of the network or the Source.
    Retryable,
    /// No secure connection can be made: a certificate or TLS itself is not acceptable.
    Tls,
    /// More deletions are due than one run may make.
    DeleteLimit,
    /// A limit of failures, bytes or time was reached.
    Limit,
    /// Another run uses the same folder.
    Locked,
    /// Changes were missed and no baseline can be made.
    Gap,
    /// The Source requires other credentials.
    Auth,
    /// The disk failed or is full.
    Io,
    /// The user stopped the run.
    Cancelled,
}

impl ExitCode {
    /// The number with which the process ends.
    pub const fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Other => 1,
            Self::Usage => 2,
            Self::Partial => 3,
            Self::SourceInvalid => 4,
            Self::Retryable => 5,
            Self::Tls => 6,
            Self::DeleteLimit => 7,
            Self::Limit => 8,
            Self::Locked => 10,
            Self::Gap => 11,
            Self::Auth => 12,
            Self::Io => 13,
            Self::Cancelled => 130,
        }
    }
}

/// The error that stopped a run: a stable code, what failed and where, and how to solve it.
#[derive(Debug, thiserror::Error)]
#[error("{message}{}", help_line(help.as_deref()))]
pub struct Error {
    code: &'static str,
    exit: ExitCode,
    message: String,
    help: Option<String>,
    candidates: Vec<String>,
    #[source]
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    status: Option<u16>,
}

impl Error {
    pub(crate) fn new(code: &'static str, exit: ExitCode, message: impl Into<String>) -> Self {
        Self {
            code,
            exit,
            message: message.into(),
            help: None,
            candidates: Vec::new(),
            cause: None,
            status: None,
        }
    }

    /// Replaces the help of the error.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the values of which the user has to give one, such as the names of sets.
    pub(crate) fn with_candidates(mut self, candidates: impl IntoIterator<Item = String>) -> Self {
        self.candidates = candidates.into_iter().collect();
        self
    }

    /// Adds a line to the message.
    pub(crate) fn with_line(mut self, line: &str) -> Self {
        self.message = format!("{}\n  {line}", self.message);
        self
    }

    /// Adds a line for each address that was requested without success.
    pub(crate) fn with_tried(self, tried: &[String]) -> Self {
        tried.iter().fold(self, |error, line| error.with_line(&format!("tried {line}")))
    }

    pub(crate) fn with_cause(
        mut self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.cause = Some(cause.into());
        self
    }

    pub(crate) const fn with_status(mut self, status: Option<u16>) -> Self {
        self.status = status;
        self
    }

    /// The status of the HTTP response that caused the error.
    pub(crate) const fn status(&self) -> Option<u16> {
        self.status
    }

    /// Whether the document may have been removed: some servers answer 403 for documents that do
    /// not exist.
    pub(crate) fn may_be_gone(&self) -> bool {
        self.exit_code() == ExitCode::SourceInvalid || self.status == Some(403)
    }

    pub(crate) fn cancelled() -> Self {
        Self::new("cancelled", ExitCode::Cancelled, "stopped before the end")
            .with_help("run the same command again to continue where it stopped")
    }

    /// The stable code, for example `delete.limit`.
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// The exit code of a run that this error stopped.
    pub const fn exit_code(&self) -> ExitCode {
        self.exit
    }

    /// What failed and where, without [`Self::help`].
    pub fn message(&self) -> &str {
        without_help(&self.message).0
    }

    /// The values of which the user has to give one, such as the names of sets; empty for most
    /// errors.
    pub fn candidates(&self) -> &[String] {
        &self.candidates
    }

    /// How to solve the problem, if a solution is known.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Whether a later run may succeed without anybody doing anything.
    pub const fn is_transient(&self) -> bool {
        matches!(self.exit, ExitCode::Retryable)
    }
}

impl From<abreast_core::LogError> for Error {
    fn from(cause: abreast_core::LogError) -> Self {
        if cause.kind() == abreast_core::ErrorKind::Full {
            let message = "the disk is full: cannot keep the state of the copy";
            return Self::new("disk.full", ExitCode::Io, message)
                .with_help("free space, then run the same command again")
                .with_cause(cause);
        }
        Self::new("state", ExitCode::Io, "cannot keep the state of the copy").with_cause(cause)
    }
}

impl From<abreast_folder::Error> for Error {
    fn from(cause: abreast_folder::Error) -> Self {
        let (code, help) = match cause.kind() {
            abreast_folder::ErrorKind::Full => {
                ("disk.full", Some("free space, then run the same command again"))
            }
            abreast_folder::ErrorKind::Denied => {
                ("path.denied", Some("run as a user who may read and write there"))
            }
            _ => ("io", None),
        };
        let error = Self::new(code, ExitCode::Io, cause.to_string());
        let error = match help {
            Some(help) => error.with_help(help),
            None => error,
        };
        error.with_cause(cause)
    }
}

/// The reason why a request failed, as one line that starts with its address.
pub(crate) fn line_of(url: &str, error: &Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let why = line.strip_prefix(&format!("cannot fetch {url}: ")).unwrap_or(line);
    format!("{url}: {why}")
}

pub(crate) fn no_temporary(cause: std::io::Error) -> Error {
    let message = format!("cannot make a temporary folder: {cause}");
    Error::new("io", ExitCode::Io, message)
        .with_help("set TMPDIR to a folder with room for the snapshot")
        .with_cause(cause)
}

/// Splits a message into its text and the help after `help:`, if there is one.
pub fn without_help(message: &str) -> (&str, Option<&str>) {
    match message.split_once("\n  help: ") {
        Some((message, help)) => (message, Some(help)),
        None => (message, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn the_text_has_the_help_and_not_the_cause() {
        let error = Error::new("io", ExitCode::Io, "cannot write").with_line("twice");
        assert_eq!(error.to_string(), "cannot write\n  twice");
        let error = error.with_help("free space").with_cause(std::io::Error::other("full"));
        assert_eq!(error.to_string(), "cannot write\n  twice\n  help: free space");
        assert_eq!(error.source().unwrap().to_string(), "full");
    }
}
