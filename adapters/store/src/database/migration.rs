//! Schema versions of a database, and migration to the newest.

use crate::database::connection::sqlite_error;
use crate::database::read_only::open_for_check;
use abreast_core::{ErrorKind, LogError};
use rusqlite::{Connection, TransactionBehavior};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Instant;

/// Offset of the journal version in the header of a database, and its value for a write-ahead log.
const WRITE_VERSION: usize = 18;
const WRITE_AHEAD: u8 = 2;
/// The table with the schema version.
pub(crate) const VERSION_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL) STRICT";

/// Brings a database to the newest schema: `steps` in order, each applied once, all in one
/// transaction.
pub(crate) fn migrate(
    connection: &mut Connection,
    path: &Path,
    steps: &[&str],
) -> Result<(), LogError> {
    let newest = steps.len() as i64;
    let mut apply = || -> rusqlite::Result<i64> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(VERSION_TABLE)?;
        let found: i64 = transaction.query_row(
            "SELECT ifnull(max(version), 0) FROM schema_version",
            [],
            |row| row.get(0),
        )?;
        if found < newest {
            // A new database has no rows to change.
            let is_old = found > 0;
            if is_old {
                tracing::info!(path = %path.display(), found, newest, "migrating the database to a newer schema");
            }
            let begun = Instant::now();
            for step in &steps[found as usize..] {
                transaction.execute_batch(step)?;
            }
            transaction.execute("DELETE FROM schema_version", [])?;
            transaction.execute("INSERT INTO schema_version (version) VALUES (?1)", [newest])?;
            transaction.commit()?;
            if is_old {
                let seconds = begun.elapsed().as_secs_f64();
                tracing::info!(path = %path.display(), newest, seconds, "the database is migrated");
            }
            return Ok(found);
        }
        transaction.commit()?;
        Ok(found)
    };
    let found = apply().map_err(|cause| {
        sqlite_error(&format!("cannot bring the store {} up to date", path.display()), cause)
    })?;
    check_schema(found, newest, path)
}

/// Whether a database has an older schema. Only reads it.
pub(crate) fn is_older(path: &Path, steps: &[&str]) -> Result<bool, LogError> {
    let connection = open_for_check(path)?;
    let version = "SELECT ifnull(max(version), 0) FROM schema_version";
    let found: i64 = connection.query_row(version, [], |row| row.get(0)).map_err(|cause| {
        sqlite_error(&format!("cannot read the schema of {}", path.display()), cause)
    })?;
    Ok(found < steps.len() as i64)
}

/// Whether opening a database would change it: it has an older schema, or no write-ahead log, like
/// a copy in a backup. Read-only.
pub(crate) fn is_changed_by_opening(path: &Path, steps: &[&str]) -> Result<bool, LogError> {
    let mut header = [0; WRITE_VERSION + 1];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).map_err(|cause| {
        let message = format!("cannot read the header of {}", path.display());
        LogError::new(ErrorKind::Io, message).with_cause(cause)
    })?;
    Ok(header[WRITE_VERSION] != WRITE_AHEAD || is_older(path, steps)?)
}

/// Refuses a database that a newer program wrote.
pub(crate) fn check_schema(found: i64, newest: i64, path: &Path) -> Result<(), LogError> {
    if found > newest {
        return Err(LogError::new(
            ErrorKind::Corrupt,
            format!(
                "the store {} has schema {found}, this program knows up to {newest}\n  help: use the newer program \
                 that wrote it, or restore a backup made before the upgrade",
                path.display()
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::connection::{Durability, open_connection};

    const ONE: &str = "CREATE TABLE a (x INTEGER) STRICT;";
    const TWO: &str = "ALTER TABLE a ADD COLUMN y INTEGER;";

    #[test]
    fn steps_are_applied_once_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        let mut connection = open_connection(&path, Durability::PowerLoss).unwrap();
        migrate(&mut connection, &path, &[ONE]).unwrap();
        connection.execute("INSERT INTO a (x) VALUES (1)", []).unwrap();
        migrate(&mut connection, &path, &[ONE, TWO]).unwrap();
        migrate(&mut connection, &path, &[ONE, TWO]).unwrap();
        let x: i64 =
            connection.query_row("SELECT x FROM a WHERE y IS NULL", [], |row| row.get(0)).unwrap();
        assert_eq!(x, 1);
    }

    #[test]
    fn a_newer_schema_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        let mut connection = open_connection(&path, Durability::PowerLoss).unwrap();
        migrate(&mut connection, &path, &[ONE, TWO]).unwrap();
        let refused = migrate(&mut connection, &path, &[ONE]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt);
        assert!(
            refused.to_string().contains("has schema 2, this program knows up to 1"),
            "{refused}"
        );
        migrate(&mut connection, &path, &[ONE, TWO]).unwrap();
    }
}
