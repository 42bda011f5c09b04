//! Why an item of a run was not done.

use crate::report::error::{Error, ExitCode};
use abreast_folder::ErrorKind;

/// Why an item was not done.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// Refused by rule rather than failed by accident.
    pub(crate) refused: bool,
    /// Nothing else will work either: the disk is full or broken.
    pub(crate) fatal: bool,
}

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), refused: false, fatal: false }
    }

    pub(crate) fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self { refused: true, ..Self::new(code, message) }
    }

    pub(crate) fn fatal(code: &'static str, message: impl Into<String>) -> Self {
        Self { fatal: true, ..Self::new(code, message) }
    }
}

impl Failure {
    /// The error with which a fatal failure ends the run.
    pub(crate) fn into_error(self) -> Error {
        let (exit, help) = match self.code {
            "disk.full" => (ExitCode::Io, "free space, then run the same command again"),
            "objects.bucket" => (ExitCode::Usage, "create it, or correct the URL or AWS_REGION"),
            "objects.denied" => {
                (ExitCode::Io, "check the credentials in the environment and the rights they have")
            }
            _ => (ExitCode::Io, "check the disk, then run the same command again"),
        };
        Error::new(self.code, exit, self.message).with_help(help)
    }
}

impl From<abreast_folder::Error> for Failure {
    fn from(error: abreast_folder::Error) -> Self {
        let cause =
            std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        Self {
            fatal: matches!(error.kind(), ErrorKind::Full | ErrorKind::Other),
            ..Self::new(code_of(&error), format!("{error}{cause}"))
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let full = matches!(
            error.kind(),
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
        );
        Self::fatal(
            if full { "disk.full" } else { "io" },
            format!("cannot write the file: {error}"),
        )
    }
}

impl From<abreast_net::Error> for Failure {
    fn from(error: abreast_net::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// The stable code for a failure in the folder.
pub(crate) const fn code_of(error: &abreast_folder::Error) -> &'static str {
    match error.kind() {
        ErrorKind::Symlink => "path.symlink",
        ErrorKind::NotFolder | ErrorKind::Exists | ErrorKind::NotEmpty => "path.conflict",
        ErrorKind::NotFile => "path.special",
        ErrorKind::TooLong | ErrorKind::Name => "path.length",
        ErrorKind::Denied => "path.denied",
        ErrorKind::Full => "disk.full",
        _ => "io",
    }
}
