//! Outcomes of items, with what is reported about them.

use crate::copy::place::{NoPlace, code_of};
use crate::report::error::{Error, ExitCode};
use abreast_folder::ErrorKind;
use abreast_store::mirror::Row;

/// The outcome of one item.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is there, verified as far as it can be.
    Stored { row: Row, created: bool, notices: Vec<Notice> },
    /// The right bytes were there already.
    Right { row: Row },
    /// The Source states nothing about it: there is no such resource.
    Gone,
    /// Waits for its parent folder.
    Conflict,
    /// Not done.
    Failed(Failure),
}

/// A notice about an item that was done.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Notice {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

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
    /// The error that ends the run: of a fatal failure.
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

impl From<NoPlace> for Failure {
    fn from(no_place: NoPlace) -> Self {
        match no_place {
            NoPlace::Path(error) => Self::refused(error.code(), error.to_string()),
            NoPlace::Parent => Self::new("path.conflict", "a file stands where a folder is needed"),
            NoPlace::Refused(error) => error.into(),
        }
    }
}
