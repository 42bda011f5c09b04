//! A pool of read-only connections, each used by one caller at a time.

use crate::database::connection::{open_reader, sqlite_error};
use abreast_core::{ErrorKind, LogError};
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most connections that read at the same time; further callers wait.
const READERS_MAX: usize = 8;
/// Longest time that a caller waits for a connection.
const WAIT: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Pool {
    idle: Vec<Connection>,
    in_use: usize,
}

/// The reading connections of a store, opened when first needed.
pub(crate) struct Readers {
    path: PathBuf,
    pool: Mutex<Pool>,
    returned: Condvar,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, pool: Mutex::default(), returned: Condvar::new() }
    }

    /// Reads with a connection from the pool, in one transaction: all queries see the same data,
    /// and the file is locked once.
    pub(crate) fn with<T>(
        &self,
        task: &str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LogError> {
        let borrowed = self.borrow_reader()?;
        match &borrowed.connection {
            Some(connection) => Reading::begin(connection)
                .and_then(|reading| read(reading.0))
                .map_err(|cause| sqlite_error(task, cause)),
            None => unreachable!("a connection is lent until the guard is dropped"),
        }
    }

    /// Closes unused connections. The last connection to be closed copies the write-ahead log into
    /// the database. If two are closed at the same instant, each finds the other still open, and
    /// neither copies the log. Therefore a store closes its readers first, then its writer.
    pub(crate) fn close_idle(&self) {
        self.lock().idle.clear();
    }

    fn borrow_reader(&self) -> Result<BorrowedReader<'_>, LogError> {
        let (mut pool, timeout) = self
            .returned
            .wait_timeout_while(self.lock(), WAIT, |pool| pool.in_use >= READERS_MAX)
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() && pool.in_use >= READERS_MAX {
            return Err(LogError::new(
                ErrorKind::Busy,
                format!(
                    "{READERS_MAX} others are reading the store {}\n  help: try again later",
                    self.path.display()
                ),
            ));
        }
        pool.in_use += 1;
        let idle = pool.idle.pop();
        drop(pool);
        let mut borrowed = BorrowedReader { readers: self, connection: idle };
        if borrowed.connection.is_none() {
            borrowed.connection = Some(open_reader(&self.path)?);
        }
        Ok(borrowed)
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transaction that only reads.
struct Reading<'c>(&'c Connection);

impl<'c> Reading<'c> {
    fn begin(connection: &'c Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(Self(connection))
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        // A reading transaction has no changes to commit; a connection on which this fails is not
        // used again.
        let _ = self.0.prepare_cached("COMMIT").and_then(|mut end| end.execute([]));
    }
}

/// Returns the connection to the pool, also if the reading panics.
struct BorrowedReader<'r> {
    readers: &'r Readers,
    connection: Option<Connection>,
}

impl Drop for BorrowedReader<'_> {
    fn drop(&mut self) {
        let mut pool = self.readers.lock();
        pool.in_use -= 1;
        let whole = |connection: &Connection| connection.is_autocommit();
        pool.idle.extend(self.connection.take().filter(whole));
        drop(pool);
        self.readers.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::connection::{Durability, beside, open_connection};

    #[test]
    fn all_queries_of_one_caller_see_the_same_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let writer = open_connection(&path, Durability::PowerLoss).unwrap();
        writer.execute_batch("CREATE TABLE t (a INTEGER) STRICT").unwrap();
        let readers = Readers::new(path);
        let count = |reader: &Connection| {
            reader.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))
        };
        let both = readers.with("count", |reader| {
            let before = count(reader)?;
            writer.execute("INSERT INTO t VALUES (1)", [])?;
            Ok((before, count(reader)?))
        });
        assert_eq!(both.unwrap(), (0, 0));
        assert_eq!(readers.with("count", count).unwrap(), 1);
        // Also after an error and after a panic.
        let failed = readers.with("fail", |reader| reader.execute("no SQL", []));
        assert!(failed.is_err());
        let panicking = std::panic::AssertUnwindSafe(|| {
            readers.with("panic", |_| -> rusqlite::Result<()> { panic!("in a reader") })
        });
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert_eq!(readers.with("count", count).unwrap(), 1);
        assert_eq!(readers.lock().idle.len(), 1);
    }

    #[test]
    fn the_last_connection_leaves_one_file_whichever_it_is() {
        for reader_last in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("store.db");
            let writer = open_connection(&path, Durability::PowerLoss).unwrap();
            writer
                .execute_batch("CREATE TABLE t (a INTEGER) STRICT; INSERT INTO t VALUES (1)")
                .unwrap();
            let readers = Readers::new(path.clone());
            let count = "SELECT count(*) FROM t";
            let rows: i64 = readers
                .with("count", |reader| reader.query_row(count, [], |row| row.get(0)))
                .unwrap();
            assert_eq!(rows, 1);
            let refused =
                readers.with("write", |reader| reader.execute("INSERT INTO t VALUES (2)", []));
            assert!(refused.is_err(), "a reader writes nothing");
            if reader_last {
                drop(writer);
                drop(readers);
            } else {
                drop(readers);
                drop(writer);
            }
            for ending in ["-wal", "-shm"] {
                assert!(
                    !beside(&path, ending).exists(),
                    "{ending} is left when the reader is last: {reader_last}"
                );
            }
        }
    }
}
