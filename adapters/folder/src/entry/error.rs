//! Errors of operations in a folder, by the action that a caller can take.

use rustix::io::Errno;
use std::io;

/// The kind of failure, which decides about the caller's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no file with this name.
    NotFound,
    /// A file with this name exists already.
    Exists,
    /// There is a symbolic link in place of a file or folder, and it is not followed.
    Symlink,
    /// A component of the path is not a folder.
    NotFolder,
    /// There is a folder, pipe, socket or device in place of a regular file.
    NotFile,
    /// The folder to be removed has entries.
    NotEmpty,
    /// The name is empty, `.`, `..`, longer than 255 bytes, or contains `/` or NUL.
    Name,
    /// The whole path is too long for the system, or the file system refuses the name.
    TooLong,
    /// Source and target of the operation are on different file systems.
    OtherFileSystem,
    /// The process does not have the permission.
    Denied,
    /// No space, no inodes or no quota left.
    Full,
    /// Any other error of the system.
    Other,
}

impl ErrorKind {
    const fn reason(self) -> &'static str {
        match self {
            Self::Symlink => ": a symbolic link is in the way, and links are not followed",
            Self::NotFolder => ": not a folder",
            Self::NotFile => ": not a regular file",
            Self::Name => ": not a name for one file",
            _ => "",
        }
    }
}

/// A failure, with the task, the file name and the operating system's error.
#[derive(Debug, thiserror::Error)]
#[error("cannot {task} `{name}`{}", kind.reason())]
pub struct Error {
    kind: ErrorKind,
    task: &'static str,
    name: String,
    #[source]
    cause: Option<Errno>,
}

impl Error {
    pub(crate) fn new(task: &'static str, name: &[u8], errno: Errno) -> Self {
        let kind = match errno {
            Errno::NOENT => ErrorKind::NotFound,
            Errno::EXIST => ErrorKind::Exists,
            Errno::LOOP => ErrorKind::Symlink,
            Errno::XDEV => ErrorKind::OtherFileSystem,
            Errno::NOTDIR => ErrorKind::NotFolder,
            // Opening a socket, or a device without a driver, fails with NXIO; opening a folder for
            // writing with ISDIR.
            Errno::ISDIR | Errno::NXIO | Errno::NODEV => ErrorKind::NotFile,
            Errno::NOTEMPTY => ErrorKind::NotEmpty,
            Errno::NAMETOOLONG | Errno::ILSEQ | Errno::INVAL => ErrorKind::TooLong,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => ErrorKind::Denied,
            Errno::NOSPC | Errno::DQUOT => ErrorKind::Full,
            _ => ErrorKind::Other,
        };
        Self { kind, task, name: shown(name), cause: Some(errno) }
    }

    pub(crate) fn of_kind(task: &'static str, name: &[u8], kind: ErrorKind) -> Self {
        Self { kind, task, name: shown(name), cause: None }
    }

    pub(crate) const fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// The kind of failure, for the caller's decision.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The file name of the failure, escaped for printing.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind =
            error.cause.map_or(io::ErrorKind::InvalidInput, |errno| io::Error::from(errno).kind());
        Self::new(kind, error)
    }
}

fn shown(name: &[u8]) -> String {
    name.iter()
        .take(512)
        .flat_map(|byte| std::ascii::escape_default(*byte))
        .map(char::from)
        .collect()
}
