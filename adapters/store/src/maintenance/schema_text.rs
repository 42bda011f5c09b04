//! The schema of a damaged database, corrected in a copy: SQLite cannot read any row if one bit of
//! the schema's text is wrong.

use crate::database::connection::{beside, sqlite_error};
use crate::database::read_only::open_for_check;
use crate::maintenance::integrity::new_database;
use abreast_core::{ErrorKind, LogError};
use rusqlite::{Connection, params};
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Most bits by which a damaged text may differ from the expected one. The texts of other versions
/// differ more.
const BITS_MAX: u32 = 8;

/// A table or an index: type, name, table and definition.
pub(crate) type Definition = [Option<Vec<u8>>; 4];

/// A database with a valid schema.
pub(crate) struct Readable {
    /// Dropped before its file is removed.
    connection: Option<Connection>,
    copy: Option<PathBuf>,
}

impl Readable {
    /// Opens a database, or a copy with a corrected schema if its schema is damaged.
    ///
    /// # Errors
    /// It cannot be opened, or not be copied.
    pub(crate) fn open(path: &Path, steps: &[&str]) -> Result<Self, LogError> {
        let task = format!("cannot read the schema of {}", path.display());
        let expected = new_database(steps).and_then(|new| definitions(&new));
        let expected = expected.map_err(|cause| sqlite_error(&task, cause))?;
        let expected: Vec<Definition> = expected.into_iter().map(|(_, one)| one).collect();
        let connection = open_for_check(path)?;
        if definitions(&connection).is_ok_and(|found| repairs(&found, &expected).is_empty()) {
            return Ok(Self { connection: Some(connection), copy: None });
        }
        drop(connection);
        let copy = beside(path, ".reading");
        let io = |cause| LogError::new(ErrorKind::Io, task.clone()).with_cause(cause);
        remove(&copy);
        fs::copy(path, &copy).map_err(io)?;
        let wal = beside(path, "-wal");
        if wal.exists() {
            fs::copy(wal, beside(&copy, "-wal")).map_err(io)?;
        }
        let mut readable = Self { connection: None, copy: Some(copy.clone()) };
        put_right(&copy, &expected).map_err(|cause| sqlite_error(&task, cause))?;
        readable.connection = Some(open_for_check(&copy)?);
        Ok(readable)
    }
}

impl Deref for Readable {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is open until it is dropped")
    }
}

impl Drop for Readable {
    fn drop(&mut self) {
        drop(self.connection.take());
        if let Some(copy) = &self.copy {
            remove(copy);
        }
    }
}

fn remove(copy: &Path) {
    for name in [copy.to_owned(), beside(copy, "-wal"), beside(copy, "-shm")] {
        let _ = fs::remove_file(name);
    }
}

/// Corrects texts that are nearly the expected ones. SQLite ignores the definitions that it cannot
/// parse meanwhile.
fn put_right(path: &Path, expected: &[Definition]) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA writable_schema = ON")?;
    let found = definitions(&connection)?;
    let mut update = connection.prepare(
        "UPDATE sqlite_schema SET type = CAST(?2 AS TEXT), name = CAST(?3 AS TEXT), tbl_name = CAST(?4 AS TEXT), \
         sql = CAST(?5 AS TEXT) WHERE rowid = ?1",
    )?;
    for (row, [kind, name, table, sql]) in repairs(&found, expected) {
        update.execute(params![row, kind, name, table, sql])?;
    }
    Ok(())
}

/// The definitions in a database, with the numbers of their rows.
fn definitions(connection: &Connection) -> rusqlite::Result<Vec<(i64, Definition)>> {
    let mut statement = connection.prepare(
        "SELECT rowid, CAST(type AS BLOB), CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema",
    )?;
    let rows = statement.query_map([], |row| {
        Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?]))
    })?;
    rows.collect()
}

/// Rows that nearly equal a missing definition, with this definition.
fn repairs<'e>(
    found: &[(i64, Definition)],
    expected: &'e [Definition],
) -> Vec<(i64, &'e Definition)> {
    let missing = expected.iter().filter(|one| found.iter().all(|(_, other)| other != *one));
    let nearly = |one: &&'e Definition| {
        let row = found.iter().find(|(_, other)| is_near(one, other))?.0;
        Some((row, *one))
    };
    missing.filter_map(|one| nearly(&one)).collect()
}

fn is_near(one: &Definition, other: &Definition) -> bool {
    let text = |definition: &Definition| -> Vec<u8> {
        definition.iter().flatten().flat_map(|part| part.iter().copied().chain([0])).collect()
    };
    let (one, other) = (text(one), text(other));
    let bits = one.iter().zip(&other).map(|(one, other)| (one ^ other).count_ones()).sum::<u32>();
    one.len() == other.len() && bits <= BITS_MAX
}
