//! The stores and options of a migration, and its common errors.

use crate::postgres::database::PostgresDatabase;
use abreast_core::{ErrorKind, LogError, Meter, Records as _};
use std::fmt;
use std::path::PathBuf;

/// Names of the records with the state of a migration, of the change log and of the hub. A database
/// with one of them is not complete.
pub(crate) const UNFINISHED: [&str; 2] = ["migration/log", "migration/hub"];
/// Name of the record with the identity of the store that was moved to a database.
pub(crate) const MIGRATED: &str = "migrated";

/// A store of a migration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MigratedStore {
    /// A folder with the databases of a store, which no other process has open.
    Folder(PathBuf),
    /// A PostgreSQL database that several nodes share.
    Database(PostgresDatabase),
}

/// Options for copying and comparing the rows of a migration.
pub struct MigrationOptions<'o> {
    /// Most rows that are copied in a transaction.
    pub rows: usize,
    /// Shows how far the migration is.
    pub meter: Meter,
    /// Returns whether the migration is to stop before the next part.
    pub is_stopped: &'o (dyn Fn() -> bool + Sync),
}

impl Default for MigrationOptions<'_> {
    fn default() -> Self {
        Self { rows: 5_000, meter: Meter::default(), is_stopped: &|| false }
    }
}

impl fmt::Debug for MigrationOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MigrationOptions").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// The rows of a table that were copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigratedTable {
    /// The name of the table.
    pub name: &'static str,
    /// The number of its rows.
    pub rows: u64,
}

/// A set that was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigratedSet {
    /// The name of the set in URLs.
    pub slug: String,
    /// Position of the last change.
    pub position: u64,
    /// The number of its resources.
    pub resources: u64,
}

/// The result of the comparison of both stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The tables with rows of users.
    pub tables: Vec<MigratedTable>,
    /// The sets of the change log.
    pub sets: Vec<MigratedSet>,
}

/// Whether a migration to the database is not complete.
///
/// # Errors
/// The database cannot be read.
pub fn is_unfinished(database: &PostgresDatabase) -> Result<bool, LogError> {
    let records = database.records();
    for name in UNFINISHED {
        if records.record_revision(name)? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The identity of the store that was moved to the database; `None` if no migration to it has ended.
/// [`identity_of`](super::identity_of) computes that of a store.
///
/// # Errors
/// The database cannot be read.
pub fn migrated_from(database: &PostgresDatabase) -> Result<Option<String>, LogError> {
    let record = database.records().record(MIGRATED)?;
    Ok(record.map(|record| String::from_utf8_lossy(&record.bytes).into_owned()))
}

/// The error of a migration that was stopped.
pub(super) fn stopped() -> LogError {
    LogError::new(
        ErrorKind::Busy,
        "the migration was stopped\n  help: start it again; it continues after the last part",
    )
}

/// The error of a difference.
pub(super) fn changed(place: &str) -> LogError {
    let message = format!(
        "the destination differs from the source in {place}; it cannot be used\n  help: check that no program changes the source, \
         empty the destination, and start the migration again"
    );
    LogError::new(ErrorKind::Corrupt, message)
}
