//! Whether something is at a path: what this user may not see is an error, and not missing.

use crate::place::error::{Context as _, Result};
use std::fs::Metadata;
use std::io;
use std::path::Path;

/// Whether a file is there.
///
/// # Errors
/// Permission is denied on the way to it.
pub fn is_file(path: &Path) -> Result<bool> {
    Ok(found(path)?.is_some_and(|found| found.is_file()))
}

/// Whether a folder is there.
///
/// # Errors
/// Permission is denied on the way to it.
pub fn is_dir(path: &Path) -> Result<bool> {
    Ok(found(path)?.is_some_and(|found| found.is_dir()))
}

/// Metadata of an existing file or folder; `None` if the path does not exist.
///
/// # Errors
/// Permission is denied on the way to it.
pub fn found(path: &Path) -> Result<Option<Metadata>> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_denied(&error) => {
            Err(error).with_context(|| format!("cannot read `{}`", path.display()))
        }
        Err(_) => Ok(None),
    }
}

/// Whether this user may not read or write a file, or nobody may write the file system.
pub fn is_denied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Makes a folder and those above it.
///
/// # Errors
/// It cannot be made. A file system that makes no folders, such as /proc, may answer that the path does not exist: that is
/// a path where nobody may write. A file at the path is not a folder.
pub fn make_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => rustix::io::Errno::ACCESS.into(),
        io::ErrorKind::AlreadyExists => rustix::io::Errno::NOTDIR.into(),
        _ => error,
    })
}

/// The help for a path of the configuration that cannot be opened.
pub fn help(error: &io::Error) -> &'static str {
    if is_denied(error) {
        "let this user read it, and search the folders around it"
    } else {
        "create it, or correct the path"
    }
}
