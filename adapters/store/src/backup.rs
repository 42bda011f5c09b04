//! Consistent copies of a store while others write, and restarting a log after a restore.
//!
//! A restart shows Destinations that the log is no longer the one they followed: it was restored from a backup, or
//! parts of it were lost. Its lists begin at the restart, so every Destination with an earlier cursor compares everything once
//! [rs-core §12.1]. Positions and numbers of Change Lists continue far beyond those that may have been given out, so none
//! means two things.

use crate::connection::{Durability, open_connection, sqlite_error};
use crate::integrity::{Findings, SetFacts, check_log, open_for_check};
use crate::migration::migrate;
use crate::sqlite_log::MIGRATIONS;
use abreast_core::{ContentId, ErrorKind, LogError};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use std::fs::File;
use std::path::Path;

/// Positions of a restarted log follow the next multiple of this.
pub const POSITIONS_APART: i64 = 1_000_000_000;
/// So do the numbers of its Change Lists.
pub const LISTS_APART: i64 = 100_000;

/// Copies a store that others may be writing, as it is at one instant, and makes the copy durable.
///
/// # Errors
/// The store cannot be read, or the copy not be written; `to` must not be there.
pub fn copy(from: &Path, to: &Path) -> Result<(), LogError> {
    let task = format!("cannot copy the store {} to {}", from.display(), to.display());
    let connection = open_for_check(from)?;
    // A connection that only reads may still write another file.
    connection
        .pragma_update(None, "query_only", false)
        .and_then(|()| connection.execute("VACUUM INTO ?1", [to.to_string_lossy()]))
        .map_err(|cause| sqlite_error(&task, cause))?;
    File::open(to)
        .and_then(|file| file.sync_all())
        .map_err(|cause| LogError::new(ErrorKind::Io, task).with_cause(cause))
}

/// Checks a copy and returns its contents; needed contents are passed to `needed`.
///
/// # Errors
/// It is damaged, or cannot be read.
pub fn check_copy(path: &Path, needed: &mut dyn FnMut(ContentId, u64)) -> Result<Vec<SetFacts>, LogError> {
    let mut findings = Findings::default();
    let sets = check_log(path, &mut findings, needed)?;
    if findings.is_consistent() {
        return Ok(sets);
    }
    let first = findings.list().first().map(ToString::to_string).unwrap_or_default();
    let message =
        format!("the store {} is damaged: {first}\n  help: `abreast repair` its original first", path.display());
    Err(LogError::new(ErrorKind::Corrupt, message))
}

/// Visits the contents that a copy needs.
///
/// # Errors
/// It cannot be read.
pub fn needed_contents(path: &Path, visit: &mut dyn FnMut(ContentId, u64)) -> Result<(), LogError> {
    let connection = open_for_check(path)?;
    let read = |visit: &mut dyn FnMut(ContentId, u64)| -> rusqlite::Result<()> {
        let sql = "SELECT id, max(length) FROM contents WHERE needed > 0 GROUP BY id ORDER BY id";
        let has_contents = connection
            .query_row("SELECT 1 FROM sqlite_schema WHERE name = 'contents'", [], |_| Ok(()))
            .optional()?
            .is_some();
        if !has_contents {
            return Ok(());
        }
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let Some(id) = row.get_ref(0)?.as_blob().ok().and_then(ContentId::from_slice) {
                visit(id, row.get::<_, i64>(1)? as u64);
            }
        }
        Ok(())
    };
    read(visit).map_err(|cause| sqlite_error(&format!("cannot read the store {}", path.display()), cause))
}

/// Restarts the logs of all sets of a store. No other process may have it open.
///
/// # Errors
/// It cannot be written.
pub fn restart_log(path: &Path, now: Timestamp) -> Result<(), LogError> {
    let mut connection = open_connection(path, Durability::PowerLoss)?;
    migrate(&mut connection, path, MIGRATIONS)?;
    let mut begin = || -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sets: Vec<i64> = transaction
            .prepare("SELECT id FROM sets")?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for set in sets {
            restart_set_log(&transaction, set, now)?;
        }
        transaction.commit()
    };
    begin().map_err(|cause| sqlite_error(&format!("cannot restart the log in {}", path.display()), cause))?;
    // One file again, as it was before.
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    Ok(())
}

/// Restarts the log of one set, within a transaction. A set without a complete base needs no restart.
pub(crate) fn restart_set_log(connection: &Connection, set: i64, now: Timestamp) -> rusqlite::Result<()> {
    let (importing, created, anew): (bool, i64, Option<i64>) =
        connection.query_row("SELECT importing, created, anew FROM sets WHERE id = ?1", [set], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    if importing {
        let pages: i64 =
            connection.query_row("SELECT count(*) FROM pages WHERE set_id = ?1", [set], |row| row.get(0))?;
        if pages == 0 {
            connection.execute(
                "INSERT INTO pages (set_id, number, after, from_time) VALUES (?1, 1, 0, ?2)",
                params![set, created],
            )?;
        }
        return Ok(());
    }
    // A value that a flipped bit made huge is not followed.
    let of = |sql: &str, most: i64| connection.query_row(sql, [set, most], |row| row.get::<_, i64>(0));
    let position = of("SELECT ifnull(max(position), 0) FROM changes WHERE set_id = ?1 AND position < ?2", NUMBERS_MAX)?;
    let after = of("SELECT ifnull(max(after), 0) FROM pages WHERE set_id = ?1 AND after < ?2", NUMBERS_MAX)?;
    let version = of("SELECT ifnull(max(version), 0) FROM shards WHERE set_id = ?1 AND version < ?2", NUMBERS_MAX)?;
    let number = of("SELECT ifnull(max(number), 0) FROM pages WHERE set_id = ?1 AND number < ?2", NUMBERS_MAX)?;
    let time = of("SELECT ifnull(max(time), 0) FROM changes WHERE set_id = ?1 AND time < ?2", TIMES_MAX)?;
    let from = of("SELECT ifnull(max(from_time), 0) FROM pages WHERE set_id = ?1 AND from_time < ?2", TIMES_MAX)?;
    let known = [Some(created), anew].into_iter().flatten().filter(|time| *time < TIMES_MAX).max().unwrap_or(0);
    let begins = now.as_micros().max(time.max(from).max(known).saturating_add(1));
    let base = beyond(position.max(after).max(version), POSITIONS_APART);
    connection.execute("DELETE FROM pages WHERE set_id = ?1", [set])?;
    connection.execute(
        "INSERT INTO pages (set_id, number, after, from_time) VALUES (?1, ?2, ?3, ?4)",
        params![set, beyond(number, LISTS_APART), base, begins],
    )?;
    connection.execute("UPDATE sets SET anew = ?2 WHERE id = ?1", params![set, begins])?;
    Ok(())
}

/// No position and no number of a list is as large.
const NUMBERS_MAX: i64 = 1 << 53;

/// No change is later than this: the year 2200.
const TIMES_MAX: i64 = 7_258_118_400_000_000;

fn beyond(number: i64, apart: i64) -> i64 {
    (number.max(0) / apart + 1).saturating_mul(apart)
}
