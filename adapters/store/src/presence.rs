//! The check that a database is still the file at its path: one that was removed, or whose folder
//! was, still takes writes, and they are lost when the process ends.

use abreast_core::{ErrorKind, LogError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The file that was opened.
#[derive(Clone, Debug)]
pub(crate) struct Presence {
    path: PathBuf,
    /// Device and inode.
    file: (u64, u64),
}

impl Presence {
    /// Of a database that was just opened.
    pub(crate) fn of(path: &Path) -> Result<Self, LogError> {
        let file = identity(path).map_err(|cause| {
            LogError::new(ErrorKind::Io, format!("cannot open the store {}", path.display()))
                .with_cause(cause)
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Fails while another file, or none, is at the path.
    pub(crate) fn check(&self) -> Result<(), LogError> {
        let reason = match identity(&self.path) {
            Ok(now) if now == self.file => return Ok(()),
            Ok(_) => "was replaced while it was open".to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "was removed while it was open".to_owned()
            }
            Err(error) => format!("cannot be reached: {error}"),
        };
        Err(LogError::new(
            ErrorKind::Io,
            format!(
                "the store {} {reason}; nothing is recorded\n  help: put it back, or start abreast again with a new store",
                self.path.display()
            ),
        ))
    }
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}
