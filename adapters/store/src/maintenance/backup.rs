//! Consistent copies of a store while others write, and restarting a log after a restore.
//!
//! A restart shows Destinations that the log they followed was replaced: the log was restored from
//! a backup, or parts were lost. Change Lists start at the restart, so every Destination with an
//! earlier cursor compares everything once [rs-core §12.1]. Positions and numbers of Change Lists
//! continue far above every number that may have been published, so that no number has two
//! meanings.

pub(crate) mod hub;

pub use hub::{OFFSETS_APART, check_hub_copy, copy_hub, restart_hub_log};

use crate::database::connection::sqlite_error;
use crate::database::locked;
use crate::database::read_only::open_for_check;
use crate::log::sqlite::log::MIGRATIONS;
use crate::maintenance::integrity::{Findings, POSITIONS_APART, SetFacts, check_log};
use abreast_core::{ErrorKind, LogError};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, params};
use std::fs::File;
use std::path::Path;

/// Numbers of a restarted log's Change Lists follow a multiple of this.
pub const LISTS_APART: i64 = 100_000;

/// Copies the present content of a store, also while others write it, and makes the copy durable.
///
/// # Errors
/// The store cannot be read, or the copy cannot be written; `to` must not exist.
pub fn copy(from: &Path, to: &Path) -> Result<(), LogError> {
    let task = format!("cannot copy the store {} to {}", from.display(), to.display());
    let connection = open_for_check(from)?;
    // `VACUUM INTO` needs permission to write, although it writes only the copy.
    connection
        .pragma_update(None, "query_only", false)
        .and_then(|()| connection.execute("VACUUM INTO ?1", [to.to_string_lossy()]))
        .map_err(|cause| sqlite_error(&task, cause))?;
    File::open(to)
        .and_then(|file| file.sync_all())
        .map_err(|cause| LogError::new(ErrorKind::Io, task).with_cause(cause))
}

/// Checks a copy and returns its contents.
///
/// # Errors
/// It is damaged, or cannot be read.
pub fn check_copy(path: &Path) -> Result<Vec<SetFacts>, LogError> {
    let mut findings = Findings::default();
    let sets = check_log(path, &mut findings)?;
    if findings.is_consistent() {
        return Ok(sets);
    }
    let first = findings.list().first().map(ToString::to_string).unwrap_or_default();
    let message = format!(
        "the store {} is damaged: {first}\n  help: `abreast repair` its original first",
        path.display()
    );
    Err(LogError::new(ErrorKind::Corrupt, message))
}

/// The sets of a store, with the creation time of each. Two stores never have the same times, and a
/// restart of the log does not change them, so they identify a store.
///
/// # Errors
/// The store cannot be read.
pub fn created_sets(path: &Path) -> Result<Vec<(String, Timestamp)>, LogError> {
    let task = format!("cannot read the sets of {}", path.display());
    let read = |connection: &Connection| -> rusqlite::Result<Vec<(String, Timestamp)>> {
        connection
            .prepare("SELECT slug, created FROM sets ORDER BY id")?
            .query_map([], |row| Ok((row.get(0)?, Timestamp::from_micros(row.get(1)?))))?
            .collect()
    };
    read(&open_for_check(path)?).map_err(|cause| sqlite_error(&task, cause))
}

/// Restarts the logs of all sets of a store.
///
/// # Errors
/// Another process has it open, or it cannot be written.
pub fn restart_log(path: &Path, now: Timestamp) -> Result<(), LogError> {
    locked::change(path, MIGRATIONS, "restart the log in", |transaction| {
        set_ids(transaction)?.into_iter().try_for_each(|set| restart_set_log(transaction, set, now))
    })
}

/// Numbers of all sets in the store.
pub(crate) fn set_ids(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    connection
        .prepare("SELECT id FROM sets ORDER BY id")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Restarts a set's log, within a transaction. A set without a complete base needs no restart.
pub(crate) fn restart_set_log(
    connection: &Connection,
    set: i64,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let (importing, created, anew): (bool, i64, Option<i64>) = connection.query_row(
        "SELECT importing, created, anew FROM sets WHERE id = ?1",
        [set],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    if importing {
        let pages: i64 =
            connection.query_row("SELECT count(*) FROM pages WHERE set_id = ?1", [set], |row| {
                row.get(0)
            })?;
        if pages == 0 {
            connection.execute(
                "INSERT INTO pages (set_id, number, after, from_time) VALUES (?1, 1, 0, ?2)",
                params![set, created],
            )?;
        }
        return Ok(());
    }
    // Ignore a value that is too large: it is damaged.
    let of =
        |sql: &str, most: i64| connection.query_row(sql, [set, most], |row| row.get::<_, i64>(0));
    let position = of(
        "SELECT ifnull(max(position), 0) FROM changes WHERE set_id = ?1 AND position < ?2",
        NUMBERS_MAX,
    )?;
    let after = of(
        "SELECT ifnull(max(after), 0) FROM pages WHERE set_id = ?1 AND after < ?2",
        NUMBERS_MAX,
    )?;
    let version = of(
        "SELECT ifnull(max(version), 0) FROM shards WHERE set_id = ?1 AND version < ?2",
        NUMBERS_MAX,
    )?;
    let number = of(
        "SELECT ifnull(max(number), 0) FROM pages WHERE set_id = ?1 AND number < ?2",
        NUMBERS_MAX,
    )?;
    let time =
        of("SELECT ifnull(max(time), 0) FROM changes WHERE set_id = ?1 AND time < ?2", TIMES_MAX)?;
    let from = of(
        "SELECT ifnull(max(from_time), 0) FROM pages WHERE set_id = ?1 AND from_time < ?2",
        TIMES_MAX,
    )?;
    let known = [Some(created), anew]
        .into_iter()
        .flatten()
        .filter(|time| *time < TIMES_MAX)
        .max()
        .unwrap_or(0);
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

/// Larger positions and numbers of lists are damaged.
const NUMBERS_MAX: i64 = 1 << 53;

/// Later times, after the year 2200, are damaged.
const TIMES_MAX: i64 = 7_258_118_400_000_000;

fn beyond(number: i64, apart: i64) -> i64 {
    (number.max(0) / apart + 1).saturating_mul(apart)
}
