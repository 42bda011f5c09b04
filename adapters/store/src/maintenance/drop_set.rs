//! Dropping a set with its history, and its topics, from unused stores.

use crate::database::locked;
use crate::database::read_only::read;
use crate::log::sqlite::log::MIGRATIONS;
use crate::maintenance::former_sets::{self, Removal};
use crate::maintenance::integrity::set::SET_TABLES;
use abreast_core::LogError;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::path::Path;

/// Rows of a dropped set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedSet {
    /// Resources that the set had.
    pub resources: u64,
    /// Number of changes in the set's log.
    pub changes: u64,
    /// Number of stored earlier versions of resources.
    pub versions: u64,
}

/// Drops a set, or without `removal` only counts the rows. Returns `None` if the store does not have
/// the set. Its name is then a [former one](crate::former_sets). Stored contents that no other set needs are removed by the next comparison of the
/// contents folder with the store.
///
/// # Errors
/// Another process has the store open, or it cannot be written.
pub fn drop_set(
    path: &Path,
    slug: &str,
    removal: Option<&Removal>,
) -> Result<Option<DroppedSet>, LogError> {
    let mut dropped = None;
    let mut work = |connection: &Connection| -> rusqlite::Result<()> {
        let find = "SELECT id FROM sets WHERE slug = ?1";
        let found: Option<i64> = connection.query_row(find, [slug], |row| row.get(0)).optional()?;
        let Some(id) = found else { return Ok(()) };
        let count = |table: &str| count_rows(connection, table, "set_id = ?1", id);
        dropped = Some(DroppedSet {
            resources: count("resources")?,
            changes: count("changes")?,
            versions: count("versions")?,
        });
        let Some(removal) = removal else { return Ok(()) };
        for table in SET_TABLES {
            connection.execute(&format!("DELETE FROM {table} WHERE set_id = ?1"), params![id])?;
        }
        connection.execute("DELETE FROM sets WHERE id = ?1", params![id])?;
        former_sets::note_removal(connection, (id, slug), removal)
    };
    if removal.is_none() {
        read(path, "count a set of", work)?;
    } else {
        locked::change(path, MIGRATIONS, "drop a set of", |transaction| work(transaction))?;
    }
    Ok(dropped)
}

/// Topics of a dropped set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedTopics {
    /// Topics with one of the given URLs.
    pub topics: u64,
    /// Subscriptions, and other targets of their notifications.
    pub targets: u64,
}

/// Drops the topics with these URLs from a hub's store, with their notifications, targets and
/// verifications; with `dry_run` only counts them. Subscribers are not notified.
///
/// # Errors
/// Another process has the store open, or it cannot be written.
pub fn drop_topics(path: &Path, urls: &[String], dry_run: bool) -> Result<DroppedTopics, LogError> {
    let mut dropped = DroppedTopics::default();
    let mut work = |connection: &Connection| -> rusqlite::Result<()> {
        for url in urls {
            let find = "SELECT id FROM topics WHERE url = ?1";
            let id = connection.query_row(find, [url], |row| row.get::<_, i64>(0)).optional()?;
            if !dry_run {
                connection.execute("DELETE FROM verifications WHERE topic_url = ?1", [url])?;
            }
            let Some(id) = id else { continue };
            dropped.topics += 1;
            dropped.targets += count_rows(connection, "targets", "topic_id = ?1", id)?;
            if dry_run {
                continue;
            }
            let targets = "(SELECT id FROM targets WHERE topic_id = ?1)";
            let bodies = "(SELECT body_id FROM notifications WHERE topic_id = ?1)";
            for rows in [
                format!("progress WHERE target_id IN {targets}"),
                format!("attempts WHERE target_id IN {targets}"),
                format!("dead WHERE target_id IN {targets}"),
                format!("bodies WHERE id IN {bodies}"),
                "targets WHERE topic_id = ?1".to_owned(),
                "notifications WHERE topic_id = ?1".to_owned(),
                "ended WHERE topic_id = ?1".to_owned(),
                "topics WHERE id = ?1".to_owned(),
            ] {
                connection.execute(&format!("DELETE FROM {rows}"), [id])?;
            }
        }
        Ok(())
    };
    if dry_run {
        read(path, "count the topics of a set in", work)?;
    } else {
        let steps = crate::hub::MIGRATIONS;
        locked::change(path, steps, "drop the topics of a set in", |transaction| {
            work(transaction)
        })?;
    }
    Ok(dropped)
}

/// Number of rows in a table; 0 if an older schema does not have the table.
fn count_rows(connection: &Connection, table: &str, which: &str, id: i64) -> rusqlite::Result<u64> {
    let has = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";
    if !connection.query_row(has, [table], |row| row.get::<_, bool>(0))? {
        return Ok(0);
    }
    let sql = format!("SELECT count(*) FROM {table} WHERE {which}");
    connection.query_row(&sql, params![id], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}
