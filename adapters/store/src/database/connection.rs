//! Opening a database file, and reporting errors of SQLite.

use abreast_core::{ErrorKind, LogError};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The oldest SQLite without the WAL-reset bug, which lost committed writes.
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// How long a statement waits for another connection's lock.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Frames (changed pages) in the write-ahead log before they are copied into the database.
pub(crate) const CHECKPOINT_FRAMES: i64 = 2_000;
/// Most frames that remain in the write-ahead log because of readers; its file is truncated to this
/// size.
pub(crate) const WAL_FRAMES_MAX: i64 = 64 * 1024 * 1024 / PAGE_BYTES;
const PAGE_BYTES: i64 = 8_192;
/// Prepared statements cached for each connection.
const STATEMENTS_MAX: usize = 64;

/// The failures that a commit must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Loss of power. For changes whose recording was confirmed to a caller.
    PowerLoss,
    /// The end of the process; after loss of power the last commits may be missing, each as a
    /// whole.
    ProcessEnd,
}

/// Opens a database for reading and writing; creates the file if it does not exist.
pub(crate) fn open_connection(path: &Path, durability: Durability) -> Result<Connection, LogError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        let message = format!(
            "SQLite {} can lose committed writes\n  help: build with 3.51.3 or newer",
            rusqlite::version()
        );
        return Err(LogError::new(ErrorKind::Corrupt, message));
    }
    prepare(path, durability, OpenFlags::empty())
}

/// As [`open_connection`], for a database in a folder that others may write into. The database and
/// the files with its name and a suffix must not be symbolic links or have a second hard link. The
/// path of the folder may contain links.
pub(crate) fn open_own_connection(
    path: &Path,
    durability: Durability,
) -> Result<Connection, LogError> {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let path = folder
        .zip(path.file_name())
        .map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name));
    refuse_links(&path)?;
    prepare(&path, durability, OpenFlags::SQLITE_OPEN_NOFOLLOW)
}

fn refuse_links(path: &Path) -> Result<(), LogError> {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let path = beside(path, ending);
        let Ok(found) = path.symlink_metadata() else { continue };
        let what = match found.nlink() {
            _ if found.is_symlink() => "is a symbolic link",
            _ if !found.is_file() => "is not a regular file",
            1 => continue,
            _ => "has another name (a hard link)",
        };
        let message = format!(
            "cannot open the store {0}: it {what}, and what is written to it would be written elsewhere\n  \
             help: remove it, or copy it to a file of its own",
            path.display()
        );
        return Err(LogError::new(ErrorKind::Io, message));
    }
    Ok(())
}

fn prepare(path: &Path, durability: Durability, more: OpenFlags) -> Result<Connection, LogError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |cause| sqlite_error(&format!("cannot open the store {}", path.display()), cause);
    let connection = Connection::open_with_flags(path, flags | more).map_err(failed)?;
    if !more.is_empty() {
        // Check again: the file that is now open is the file that will be written.
        refuse_links(path)?;
    }
    let prepare = || -> rusqlite::Result<Connection> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        connection.pragma_update(None, "page_size", PAGE_BYTES)?; // only a new file takes it
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        debug_assert_eq!(mode, "wal");
        connection.pragma_update(
            None,
            "synchronous",
            match durability {
                Durability::PowerLoss => "FULL",
                Durability::ProcessEnd => "NORMAL",
            },
        )?;
        connection.pragma_update(None, "mmap_size", 0)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_FRAMES)?;
        connection.pragma_update(None, "journal_size_limit", WAL_FRAMES_MAX * PAGE_BYTES)?;
        connection.pragma_update(None, "cache_size", -16 * 1024)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        plan_once(&connection)?;
        if durability == Durability::ProcessEnd {
            // Do not copy the log into the database after a short run: the next run reads the log,
            // which is limited in size.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        }
        Ok(connection)
    };
    prepare().map_err(failed)
}

/// Opens a database read-only. Only the files that SQLite needs for sharing are written.
pub(crate) fn open_read_only(path: &Path) -> Result<Connection, LogError> {
    open_for_queries(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Opens one more connection to a database that this process has open, for queries only. It may
/// write the file, because the last connection to be closed copies the write-ahead log into the
/// database.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, LogError> {
    open_for_queries(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn open_for_queries(path: &Path, access: OpenFlags) -> Result<Connection, LogError> {
    let prepare = || -> rusqlite::Result<Connection> {
        let connection =
            Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "mmap_size", 0)?;
        connection.pragma_update(None, "cache_size", -2 * 1024)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        plan_once(&connection)?;
        Ok(connection)
    };
    prepare().map_err(|cause| {
        sqlite_error(&format!("cannot open the store {} for reading", path.display()), cause)
    })
}

/// Plans a statement once for all values bound to it. Otherwise SQLite compiles each statement that
/// has a range (`key >= ?`) again whenever it is run, which takes longer than the query.
fn plan_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// The path with a suffix appended to the file name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The code of an SQLite error. A shared memory file that cannot grow is reported as a disk error
/// (`SQLITE_IOERR_SHMSIZE`), although the disk is only full.
pub(crate) fn code_of(cause: &rusqlite::Error) -> Option<ErrorCode> {
    let is_full = cause
        .sqlite_error()
        .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
    if is_full { Some(ErrorCode::DiskFull) } else { cause.sqlite_error_code() }
}

/// Converts an SQLite error; `task` is the start of the message.
pub(crate) fn sqlite_error(task: &str, cause: rusqlite::Error) -> LogError {
    if matches!(
        cause,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    ) {
        let message = format!("{task}\n  help: the store is damaged; `abreast check` shows where");
        return LogError::new(ErrorKind::Corrupt, message).with_cause(cause);
    }
    let (kind, help) = match code_of(&cause) {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            (ErrorKind::Corrupt, "\n  help: restore the file from a backup")
        }
        Some(ErrorCode::DiskFull) => {
            (ErrorKind::Full, "\n  help: free space on its disk, then try again")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (ErrorKind::Busy, "\n  help: another process holds the file; stop it or try again")
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            (ErrorKind::Io, "\n  help: the file and its folder must be writable by this process")
        }
        _ => (ErrorKind::Io, ""),
    };
    let error = LogError::new(kind, format!("{task}{help}"));
    if kind == ErrorKind::Full {
        // SQLite reports a full disk as "disk I/O error", or with a number that a user may take for
        // an exit code.
        return error
            .with_cause(std::io::Error::new(std::io::ErrorKind::StorageFull, "the disk is full"));
    }
    error.with_cause(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_in_our_words() {
        use rusqlite::ffi::{Error, SQLITE_FULL, SQLITE_IOERR_SHMSIZE};
        use std::error::Error as _;
        for code in [SQLITE_FULL, SQLITE_IOERR_SHMSIZE] {
            let cause = rusqlite::Error::SqliteFailure(Error::new(code), None);
            let error = sqlite_error("cannot open the store", cause);
            assert_eq!(error.kind(), ErrorKind::Full);
            let source = error.source().unwrap();
            assert_eq!(source.to_string(), "the disk is full");
            assert!(source.source().is_none());
        }
    }

    #[test]
    fn statements_are_compiled_once_for_all_values() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        let writer = open_connection(&path, Durability::PowerLoss).unwrap();
        writer
            .execute_batch("CREATE TABLE t (a INTEGER, b TEXT, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID; CREATE INDEX i ON t (b) WHERE b > 'm'")
            .unwrap();
        for connection in [writer, open_reader(&path).unwrap(), open_read_only(&path).unwrap()] {
            for number in 0..5 {
                let mut range = connection
                    .prepare_cached("SELECT b FROM t WHERE a = ?1 AND b >= ?2 AND b < ?3")
                    .unwrap();
                assert!(
                    !range
                        .exists(rusqlite::params![
                            number,
                            format!("a{number}"),
                            format!("b{number}")
                        ])
                        .unwrap()
                );
                assert_eq!(range.get_status(rusqlite::StatementStatus::RePrepare), 0);
            }
        }
    }

    #[test]
    fn commits_survive_loss_of_power_where_promised() {
        let folder = tempfile::tempdir().unwrap();
        for (durability, expected) in [(Durability::PowerLoss, 2), (Durability::ProcessEnd, 1)] {
            let connection =
                open_connection(&folder.path().join("store.sqlite"), durability).unwrap();
            let level: i64 =
                connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
            assert_eq!(level, expected);
            let page: i64 =
                connection.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
            assert_eq!(page, 8192);
        }
    }

    #[test]
    fn a_file_that_is_not_a_database_is_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        std::fs::write(&path, vec![7_u8; 20_000]).unwrap();
        assert_eq!(
            open_connection(&path, Durability::PowerLoss).unwrap_err().kind(),
            ErrorKind::Corrupt
        );
    }
}
