//! Errors of the folder, by the action that a caller can take.

use abreast_core::contents::{Error, ErrorKind};
use std::io;

const FOREIGN: &str = "\n  help: something else, perhaps a symbolic link, stands in the folder of kept contents; remove it";
const DAMAGED: &str =
    "\n  help: stop the server, then run `abreast check --read-data` and `abreast repair`";
/// The error for a symbolic link that is not followed.
const LOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();

/// Error for a task that the operating system refused.
pub(crate) fn failed(task: &str, cause: impl Into<io::Error>) -> Error {
    let cause = cause.into();
    let (kind, help) = match cause.kind() {
        io::ErrorKind::NotFound => (ErrorKind::NotFound, ""),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (ErrorKind::Full, "\n  help: free space on its disk, then try again")
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => (ErrorKind::Foreign, FOREIGN),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => (ErrorKind::Damaged, DAMAGED),
        _ if cause.raw_os_error() == Some(LOOP) => (ErrorKind::Foreign, FOREIGN),
        _ => (ErrorKind::Other, ""),
    };
    Error::new(kind, format!("cannot {task}{help}")).with_cause(cause)
}
