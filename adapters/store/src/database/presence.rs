//! The check that a database is still the file at its path. A file that was removed, or whose
//! folder was removed, still accepts writes, and they are lost when the process ends.

use abreast_core::{ErrorKind, LogError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Bytes that a commit, and the index of stored contents, may need.
const SPACE_MIN: u64 = 1024 * 1024;

/// The file that was opened.
#[derive(Clone, Debug)]
pub(crate) struct Presence {
    path: PathBuf,
    /// Device and inode.
    file: (u64, u64),
}

impl Presence {
    /// The presence of a database that was just opened.
    pub(crate) fn of(path: &Path) -> Result<Self, LogError> {
        let file = identity(path).map_err(|cause| {
            LogError::new(ErrorKind::Io, format!("cannot open the store {}", path.display()))
                .with_cause(cause)
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Fails while the disk has less space than a change may need.
    pub(crate) fn check_space(&self) -> Result<(), LogError> {
        let Ok(disk) = rustix::fs::statvfs(&self.path) else { return Ok(()) };
        // Some file systems report 0 blocks.
        if disk.f_blocks == 0 || disk.f_bavail.saturating_mul(disk.f_frsize) >= SPACE_MIN {
            return Ok(());
        }
        let message = format!(
            "the disk of the store {} is full\n  help: free space on it, then try again",
            self.path.display()
        );
        Err(LogError::new(ErrorKind::Full, message))
    }

    /// Fails if the file at the path is missing or another one.
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
