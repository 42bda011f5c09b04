//! A database with a single writing process: locked, and with the newest schema.

use crate::database::connection::{Durability, beside, open_connection, sqlite_error};
use crate::database::migration::migrate;
use abreast_core::{ErrorKind, LogError};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// The lock of this process on a database.
#[derive(Debug)]
pub(crate) struct DatabaseLock {
    path: PathBuf,
    file: File,
}

impl Drop for DatabaseLock {
    fn drop(&mut self) {
        // Unlock explicitly: a process that is just being started has a copy of the open file for a
        // short time.
        let _ = self.file.unlock();
    }
}

impl DatabaseLock {
    /// Locks a database for this process until the result is dropped. The lock is a separate file
    /// in the same folder: closing a lock on the database itself would release SQLite's own locks.
    pub(crate) fn take(path: &Path) -> Result<Self, LogError> {
        let beside = beside(path, ".lock");
        let io = |cause: std::io::Error| {
            LogError::new(ErrorKind::Io, format!("cannot lock the store {}", path.display()))
                .with_cause(cause)
        };
        let file =
            File::options().create(true).truncate(false).write(true).open(beside).map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), file }),
            Err(TryLockError::WouldBlock) => Err(LogError::new(
                ErrorKind::Busy,
                format!(
                    "the store {} is in use by another process\n  help: stop it, or give each its own store",
                    path.display()
                ),
            )),
            Err(TryLockError::Error(cause)) => Err(io(cause)),
        }
    }

    /// Opens the database for writing; creates the file if it does not exist, and migrates it to
    /// the newest schema.
    pub(crate) fn open(&self, steps: &[&str]) -> Result<Connection, LogError> {
        self.open_until(Durability::PowerLoss, steps)
    }

    /// As [`DatabaseLock::open`], for commits that must survive these failures.
    pub(crate) fn open_until(
        &self,
        durability: Durability,
        steps: &[&str],
    ) -> Result<Connection, LogError> {
        let mut connection = open_connection(&self.path, durability)?;
        migrate(&mut connection, &self.path, steps)?;
        Ok(connection)
    }
}

/// Changes an unused database in one transaction. `task` is for error messages.
pub(crate) fn change(
    path: &Path,
    steps: &[&str],
    task: &str,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
) -> Result<(), LogError> {
    let lock = DatabaseLock::take(path)?;
    let mut connection = lock.open(steps)?;
    let change = || -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        work(&transaction)?;
        transaction.commit()
    };
    change().map_err(|cause| sqlite_error(&format!("cannot {task} {}", path.display()), cause))?;
    // Remove the write-ahead log, so that the database is a single file again.
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_taken_by_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        let held = DatabaseLock::take(&path).unwrap();
        let refused = DatabaseLock::take(&path).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy);
        assert!(refused.to_string().contains("in use by another process"), "{refused}");
        assert_eq!(change(&path, &[], "change", |_| Ok(())).unwrap_err().kind(), ErrorKind::Busy);
        drop(held);
        change(&path, &[], "change", |_| Ok(())).unwrap();
        assert!(!beside(&path, "-wal").exists(), "it is one file afterwards");
    }
}
