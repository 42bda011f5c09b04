//! Dropping a set with its history from a store that nobody has open.

use crate::database;
use crate::integrity::SET_TABLES;
use crate::sqlite_log::MIGRATIONS;
use abreast_core::LogError;
use rusqlite::{OptionalExtension as _, Transaction, params};
use std::path::Path;

/// Rows of a dropped set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedSet {
    /// Resources that the set had.
    pub resources: u64,
    /// Changes in its log.
    pub changes: u64,
    /// Earlier versions of resources.
    pub versions: u64,
}

/// Drops a set, or with `dry_run` only counts what would be dropped; `None` where the store does not have it. Kept contents that no
/// other set needs are removed by the next comparison of their folder with the store.
///
/// # Errors
/// Another process has the store open, or it cannot be written.
pub fn drop_set(path: &Path, slug: &str, dry_run: bool) -> Result<Option<DroppedSet>, LogError> {
    let mut dropped = None;
    database::change(path, MIGRATIONS, "drop a set of", |transaction| {
        let find = "SELECT id FROM sets WHERE slug = ?1";
        let found: Option<i64> =
            transaction.query_row(find, [slug], |row| row.get(0)).optional()?;
        let Some(id) = found else { return Ok(()) };
        let count = |table: &str| count_rows(transaction, table, id);
        dropped = Some(DroppedSet {
            resources: count("resources")?,
            changes: count("changes")?,
            versions: count("versions")?,
        });
        if dry_run {
            return Ok(());
        }
        for table in SET_TABLES {
            transaction.execute(&format!("DELETE FROM {table} WHERE set_id = ?1"), params![id])?;
        }
        transaction.execute("DELETE FROM sets WHERE id = ?1", params![id]).map(drop)
    })?;
    Ok(dropped)
}

fn count_rows(transaction: &Transaction<'_>, table: &str, id: i64) -> rusqlite::Result<u64> {
    let sql = format!("SELECT count(*) FROM {table} WHERE set_id = ?1");
    transaction.query_row(&sql, params![id], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}
