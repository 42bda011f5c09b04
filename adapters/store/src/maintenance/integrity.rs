//! Integrity check of a store; read-only. Each finding has a code that does not change between
//! versions.
//!
//! The rows of a log are compared with each other by `check_sets`, for every database; SQLite also compares rows with
//! their checksums.

mod findings;
pub(crate) mod hub;
#[cfg(feature = "postgres")]
mod postgres;
pub(crate) mod set;
pub(crate) mod shared;
pub(crate) mod sqlite;

pub use findings::Findings;
pub use hub::{HubFacts, check_hub};
pub use set::{POSITIONS_APART, SetFacts};
pub use shared::SharedStore;

use crate::database::connection::{code_of, sqlite_error};
use crate::database::read_only::open_for_check;
use crate::log::sqlite::log::MIGRATIONS;
use crate::maintenance::integrity::set::check_sets;
use crate::maintenance::integrity::sqlite::SqliteRows;
use abreast_core::LogError;
use rusqlite::{Connection, ErrorCode};
use std::path::Path;

/// Most errors that SQLite's own check reports.
const DAMAGES_MAX: i64 = 50;
/// SQLite's own check of a database: pages, order of rows, indexes. Returns whether the rest can be
/// checked.
///
/// # Errors
/// SQLite's temporary files did not fit on the disk: the database was not checked then.
pub(crate) fn integrity(
    connection: &Connection,
    place: &str,
    findings: &mut Findings,
) -> Result<bool, LogError> {
    let check = || -> rusqlite::Result<Vec<String>> {
        let mut statement =
            connection.prepare(&format!("PRAGMA integrity_check({DAMAGES_MAX})"))?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    match check() {
        Ok(lines) => {
            let mut consistent = true;
            for line in lines.iter().flat_map(|text| text.lines()).filter(|line| *line != "ok") {
                findings.add("store.damaged", place, line);
                consistent = false;
            }
            Ok(consistent)
        }
        Err(cause) if code_of(&cause) == Some(ErrorCode::DiskFull) => {
            Err(sqlite_error(&format!("cannot check the store {place}"), cause))
        }
        Err(cause) => {
            findings.add("store.damaged", place, cause.to_string());
            Ok(false)
        }
    }
}

/// The version of the schema, if there is one.
pub(crate) fn schema(
    connection: &Connection,
    place: &str,
    steps: &[&str],
    findings: &mut Findings,
) -> bool {
    let newest = steps.len();
    let version: rusqlite::Result<i64> =
        connection
            .query_row("SELECT ifnull(max(version), 0) FROM schema_version", [], |row| row.get(0));
    match version {
        Ok(version) if version == newest as i64 => {
            let is_newest = is_newest(connection, steps);
            if !is_newest {
                findings.add(
                    "store.damaged",
                    place,
                    format!("the schema is not the one of version {newest}"),
                );
            }
            is_newest
        }
        // An older program did not create the tables of the newest version: the version number is
        // wrong.
        Ok(version) if version < newest as i64 && is_newest(connection, steps) => {
            let message =
                format!("the schema is the one of version {newest}, and has the number {version}");
            findings.add("store.damaged", place, message);
            false
        }
        Ok(version) if version < newest as i64 && version > 0 => {
            let message = format!(
                "schema {version}, this program writes {newest}: it is brought up to date when next opened"
            );
            findings.note("store.schema-old", place, message);
            false
        }
        Ok(version) => {
            findings.add(
                "store.schema",
                place,
                format!("schema {version}, this program knows up to {newest}"),
            );
            false
        }
        Err(cause) => {
            findings.add("store.damaged", place, format!("the schema cannot be read: {cause}"));
            false
        }
    }
}

/// Whether the tables and indexes are defined as in the newest version.
fn is_newest(connection: &Connection, steps: &[&str]) -> bool {
    matches!((texts(connection), expected_texts(steps)), (Ok(found), Ok(expected)) if found == expected)
}

/// Definitions of the tables and indexes.
fn texts(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || ifnull(sql, '') FROM sqlite_schema \
         WHERE name NOT LIKE 'sqlite_stat%' ORDER BY 1",
    )?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn expected_texts(steps: &[&str]) -> rusqlite::Result<Vec<String>> {
    texts(&new_database(steps)?)
}

/// An empty database of the newest version, in memory.
pub(crate) fn new_database(steps: &[&str]) -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(crate::database::migration::VERSION_TABLE)?;
    for step in steps {
        connection.execute_batch(step)?;
    }
    Ok(connection)
}

/// Checks a Source's store.
///
/// # Errors
/// The file cannot be opened at all.
pub fn check_log(path: &Path, findings: &mut Findings) -> Result<Vec<SetFacts>, LogError> {
    let connection = open_for_check(path)?;
    let place = path.display().to_string();
    if !integrity(&connection, &place, findings)?
        || !schema(&connection, &place, MIGRATIONS, findings)
    {
        return Ok(Vec::new());
    }
    Ok(check_rows(&connection, &place, findings))
}

/// Checks the database with the data of a copy. Returns whether the rest can be checked.
///
/// # Errors
/// The file cannot be opened at all.
pub fn check_mirror(path: &Path, findings: &mut Findings) -> Result<bool, LogError> {
    let connection = open_for_check(path)?;
    let place = path.display().to_string();
    Ok(integrity(&connection, &place, findings)?
        && schema(&connection, &place, &crate::mirror::STEPS, findings))
}

/// Checks the rows of a store that SQLite can read.
pub(crate) fn check_rows(
    connection: &Connection,
    place: &str,
    findings: &mut Findings,
) -> Vec<SetFacts> {
    let mut facts = Vec::new();
    let mut check = || -> rusqlite::Result<()> {
        let transaction = connection.unchecked_transaction()?;
        check_sets(&mut SqliteRows(&transaction), place, findings, &mut facts)
    };
    if let Err(cause) = check() {
        findings.add("store.damaged", place, cause.to_string());
    }
    facts
}
