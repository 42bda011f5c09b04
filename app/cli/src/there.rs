//! Whether something is at a path: what this user may not see is an error, and not missing.

use anyhow::Result;
use std::fs::Metadata;
use std::path::Path;

/// Whether a file is there.
///
/// # Errors
/// Permission is denied on the way to it.
pub(crate) fn is_file(path: &Path) -> Result<bool> {
    Ok(found(path)?.is_some_and(|found| found.is_file()))
}

/// Whether a folder is there.
///
/// # Errors
/// Permission is denied on the way to it.
pub(crate) fn is_dir(path: &Path) -> Result<bool> {
    Ok(found(path)?.is_some_and(|found| found.is_dir()))
}

/// Metadata of an existing file or folder; `None` if the path does not exist.
///
/// # Errors
/// Permission is denied on the way to it.
pub(crate) fn found(path: &Path) -> Result<Option<Metadata>> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if crate::exit::is_denied(&error) => {
            Err(anyhow::Error::new(error).context(format!("cannot read `{}`", path.display())))
        }
        Err(_) => Ok(None),
    }
}

/// Makes a folder and those above it.
///
/// # Errors
/// It cannot be made. A file system that makes no folders, such as /proc, may answer that the path does not exist: that is
/// a path where nobody may write. A file at the path is not a folder.
pub(crate) fn make_folder(path: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => rustix::io::Errno::ACCESS.into(),
        std::io::ErrorKind::AlreadyExists => rustix::io::Errno::NOTDIR.into(),
        _ => error,
    })
}

/// The help for a path of the configuration that cannot be opened.
pub(crate) fn help(error: &std::io::Error) -> &'static str {
    if crate::exit::is_denied(error) {
        "let this user read it, and search the folders around it"
    } else {
        "create it, or correct the path"
    }
}
