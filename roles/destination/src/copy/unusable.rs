//! Errors about a place that a copy cannot have.

use crate::report::error::{Error, ExitCode};
use std::path::Path;

pub(crate) fn overlap(message: String) -> Error {
    Error::new("folder.overlap", ExitCode::Usage, message)
        .with_help("give each copy a folder of its own, none inside another")
}

pub(crate) fn unusable(path: &Path, cause: std::io::Error) -> Error {
    use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let shown = path.display();
    let (code, what, help) = match cause.kind() {
        PermissionDenied => (
            "path.denied",
            format!("permission denied: cannot write {shown}"),
            "run as a user who may write there",
        ),
        ReadOnlyFilesystem => (
            "path.denied",
            format!("the file system is read-only: cannot write {shown}"),
            "name another folder",
        ),
        StorageFull | QuotaExceeded => (
            "disk.full",
            format!("the disk is full: cannot write {shown}"),
            "free space, then run the same command again",
        ),
        _ => {
            return Error::new("io", ExitCode::Io, format!("cannot use {shown}: {cause}"))
                .with_cause(cause);
        }
    };
    Error::new(code, ExitCode::Io, what).with_help(help).with_cause(cause)
}
