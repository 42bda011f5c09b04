//! Errors of the content store, by the action that a caller can take.

use std::io;

const FOREIGN: &str = "\n  help: something else, perhaps a symbolic link, stands in the folder of kept contents; remove it";
const DAMAGED: &str =
    "\n  help: stop the server, then run `abreast check --read-data` and `abreast repair`";
/// The error for a symbolic link that is not followed.
const LOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();

/// The kind of failure, which decides about the caller's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The folder does not have these bytes.
    NotFound,
    /// The reader has more bytes than the caller allowed.
    TooLong,
    /// Another process has the folder open.
    Busy,
    /// No space, no inodes or no quota left.
    Full,
    /// A file or folder of ours is replaced by something else, for example a symbolic link.
    Foreign,
    /// The disk failed to make bytes durable: further contents are refused until the folder is
    /// opened again.
    Untrusted,
    /// The source of the bytes failed while it was read.
    Input,
    /// The stored bytes differ from their address.
    Damaged,
    /// Any other error of the system.
    Other,
}

/// A failure, with the task and the operating system's error.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    cause: Option<io::Error>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), cause: None }
    }

    /// Error for a task that the operating system refused.
    pub(crate) fn io(task: &str, cause: impl Into<io::Error>) -> Self {
        let cause = cause.into();
        let (kind, help) = match cause.kind() {
            io::ErrorKind::NotFound => (ErrorKind::NotFound, ""),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                (ErrorKind::Full, "\n  help: free space on its disk, then try again")
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
                (ErrorKind::Foreign, FOREIGN)
            }
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                (ErrorKind::Damaged, DAMAGED)
            }
            _ if cause.raw_os_error() == Some(LOOP) => (ErrorKind::Foreign, FOREIGN),
            _ => (ErrorKind::Other, ""),
        };
        Self { kind, message: format!("cannot {task}{help}"), cause: Some(cause) }
    }

    /// The source of the bytes failed while it was read.
    pub(crate) fn input(cause: io::Error) -> Self {
        Self {
            kind: ErrorKind::Input,
            message: "cannot read the bytes to keep".into(),
            cause: Some(cause),
        }
    }

    /// The kind of failure, for the caller's decision.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = error.cause.as_ref().map_or(io::ErrorKind::Other, io::Error::kind);
        Self::new(kind, error)
    }
}
