//! Databases that are opened read-only.

use crate::database::connection::{open_read_only, sqlite_error};
use abreast_core::LogError;
use rusqlite::{Connection, OpenFlags};
use std::fmt::Write as _;
use std::path::Path;

/// Opens a database read-only. An unused database remains exactly as it is; a database in use is
/// read concurrently.
///
/// # Errors
/// It cannot be read.
pub(crate) fn open_for_check(path: &Path) -> Result<Connection, LogError> {
    let wal = crate::database::connection::beside(path, "-wal");
    if wal.exists() {
        return open_read_only(path);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let mut uri = "file:".to_owned();
    for byte in
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).as_os_str().as_encoded_bytes()
    {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    Connection::open_with_flags(uri, flags).map_err(|cause| {
        sqlite_error(&format!("cannot open the store {} for reading", path.display()), cause)
    })
}

/// Reads a database with any schema, without writing it.
pub(crate) fn read(
    path: &Path,
    task: &str,
    work: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<(), LogError> {
    work(&open_for_check(path)?)
        .map_err(|cause| sqlite_error(&format!("cannot {task} {}", path.display()), cause))
}
