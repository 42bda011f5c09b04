//! A table of the labels of entities, in a separate database that other programs can read.
//!
//! Changes are made in batches. The number of the last batch is written to this database, and
//! afterwards to the copy's own database. A difference between the two numbers shows which batch a
//! killed run left unrecorded.

use crate::database::connection::{Durability, open_own_connection, open_read_only, sqlite_error};
use abreast_core::{ErrorKind, LogError};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::path::Path;

const SCHEMA: &str = "
    CREATE TABLE label (uri TEXT NOT NULL, label TEXT NOT NULL, lang TEXT NOT NULL,
        deprecated INTEGER NOT NULL, replaced_by TEXT, changed TEXT,
        PRIMARY KEY (uri, lang, label)) STRICT, WITHOUT ROWID;
    CREATE TABLE abreast_copy (id TEXT NOT NULL, batch INTEGER NOT NULL, exported INTEGER NOT NULL) STRICT;
    CREATE TABLE abreast_batch (resource TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
    CREATE TABLE abreast_entity (resource TEXT PRIMARY KEY, uri TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE abreast_deprecated (resource TEXT PRIMARY KEY, replaced_by TEXT NOT NULL, time INTEGER) STRICT, WITHOUT ROWID;
    INSERT INTO abreast_copy VALUES ('', 0, 0);";

const READ: &str = "cannot read the table of labels";
const WRITE: &str = "cannot write the table of labels";

/// The open database with the labels of a copy's entities.
#[derive(Debug)]
pub struct LabelTable {
    connection: Connection,
    is_changing: bool,
}

/// Labels and deprecation of a resource, as [`LabelTable::replace`] stores them.
#[derive(Clone, Debug, Default)]
pub struct Labels<'l> {
    /// The described entity: the resource's URI, or another one.
    pub uri: &'l str,
    /// Each label with its language.
    pub labels: Vec<(&'l str, &'l str)>,
    /// Whether the entity is deprecated, with the URIs to use instead; `None` if the description
    /// does not contain a deprecation.
    pub deprecated: Option<(bool, &'l [String])>,
    /// Time of the resource's last change.
    pub changed: Option<Timestamp>,
}

/// One label of an entity, or an entity without label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelRow {
    /// The IRI of the entity.
    pub uri: String,
    /// The label; empty for an entity without label.
    pub label: String,
    /// The language tag; empty without one.
    pub lang: String,
    /// Whether the entity is deprecated, by its description or by the Source.
    pub deprecated: bool,
    /// IRIs of the entities to use instead, separated by spaces.
    pub replaced_by: Option<String>,
    /// Time of the resource's last change.
    pub changed: Option<String>,
}

fn failed(task: &str) -> impl FnOnce(rusqlite::Error) -> LogError {
    move |cause| sqlite_error(task, cause)
}

impl LabelTable {
    /// Opens the table in a database; creates the file if it does not exist.
    ///
    /// # Errors
    /// The database cannot be opened, is a symbolic link or has a second hard link, or has another
    /// table of this name.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let connection = open_own_connection(path, Durability::PowerLoss)?;
        let has = |name: &str| -> Result<bool, LogError> {
            let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1)";
            connection.query_row(sql, [name], |row| row.get(0)).map_err(failed(READ))
        };
        if !has("abreast_copy")? {
            if has("label")? {
                let message = format!(
                    "{} has a table `label` of another program\n  help: name another file",
                    path.display()
                );
                return Err(LogError::new(ErrorKind::Io, message));
            }
            let sql = format!("BEGIN IMMEDIATE; {SCHEMA} COMMIT");
            connection.execute_batch(&sql).map_err(failed(WRITE))?;
        }
        Ok(Self { connection, is_changing: false })
    }

    /// Opens the table read-only.
    ///
    /// # Errors
    /// The database cannot be opened.
    pub fn open_read_only(path: &Path) -> Result<Self, LogError> {
        Ok(Self { connection: open_read_only(path)?, is_changing: false })
    }

    /// Identifier of the copy whose labels the table has; empty for a new table.
    ///
    /// # Errors
    /// The system's own.
    pub fn id(&self) -> Result<String, LogError> {
        self.connection
            .query_row("SELECT id FROM abreast_copy", [], |row| row.get(0))
            .map_err(failed(READ))
    }

    /// The number of the last batch.
    ///
    /// # Errors
    /// The system's own.
    pub fn batch(&self) -> Result<i64, LogError> {
        self.connection
            .query_row("SELECT batch FROM abreast_copy", [], |row| row.get(0))
            .map_err(failed(READ))
    }

    /// Empties the table when a copy is started.
    ///
    /// # Errors
    /// The system's own.
    pub fn begin_copy(&self, id: &str) -> Result<(), LogError> {
        let sql = format!(
            "BEGIN IMMEDIATE; DELETE FROM label; DELETE FROM abreast_batch; DELETE FROM abreast_entity;
             DELETE FROM abreast_deprecated; UPDATE abreast_copy SET id = '{}', batch = 0, exported = 0; COMMIT",
            id.replace('\'', "''")
        );
        self.connection.execute_batch(&sql).map_err(failed(WRITE))
    }

    fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, LogError> {
        let run = |sql| self.connection.prepare_cached(sql)?.execute(params);
        run(sql).map_err(failed(WRITE))
    }

    fn change(&mut self, resource: &str) -> Result<(), LogError> {
        if !self.is_changing {
            let sql = "BEGIN IMMEDIATE; DELETE FROM abreast_batch";
            self.connection.execute_batch(sql).map_err(failed(WRITE))?;
            self.is_changing = true;
        }
        self.execute("INSERT OR IGNORE INTO abreast_batch VALUES (?1)", [resource]).map(drop)
    }

    /// The entity that a resource describes.
    fn entity(&self, resource: &str) -> Result<String, LogError> {
        let found: Option<String> = self
            .connection
            .prepare_cached("SELECT uri FROM abreast_entity WHERE resource = ?1")
            .and_then(|mut found| found.query_row([resource], |row| row.get(0)).optional())
            .map_err(failed(READ))?;
        Ok(found.unwrap_or_else(|| resource.to_owned()))
    }

    /// Whether the table has rows of a resource.
    ///
    /// # Errors
    /// The system's own.
    pub fn has(&self, resource: &str) -> Result<bool, LogError> {
        let entity = self.entity(resource)?;
        self.connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM label WHERE uri = ?1)")
            .and_then(|mut found| found.query_row([entity], |row| row.get(0)))
            .map_err(failed(READ))
    }

    /// Whether the table has entities, all without a label.
    ///
    /// # Errors
    /// The system's own.
    pub fn is_without_labels(&self) -> Result<bool, LogError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM label) AND NOT EXISTS (SELECT 1 FROM label WHERE label <> '')";
        self.connection.query_row(sql, [], |row| row.get(0)).map_err(failed(READ))
    }

    /// Replaces the rows of a resource. A resource without a label gets one row with an empty
    /// label.
    ///
    /// # Errors
    /// The system's own.
    pub fn replace(&mut self, resource: &str, labels: &Labels<'_>) -> Result<(), LogError> {
        self.remove_rows(resource)?;
        let uri = labels.uri;
        if uri != resource {
            self.execute("DELETE FROM label WHERE uri = ?1", [uri])?;
            self.execute("INSERT OR REPLACE INTO abreast_entity VALUES (?1, ?2)", [resource, uri])?;
        }
        let (deprecated, replaced_by) = if let Some((is_deprecated, by)) = labels.deprecated {
            self.execute("DELETE FROM abreast_deprecated WHERE resource = ?1", [resource])?;
            (is_deprecated, by.join(" "))
        } else {
            // A newer change ends a deprecation that only the Source reported.
            let changed = labels.changed.map(Timestamp::as_micros);
            self.execute(
                "DELETE FROM abreast_deprecated WHERE resource = ?1 AND time < ?2",
                params![resource, changed],
            )?;
            let marked: Option<String> = self
                .connection
                .prepare_cached("SELECT replaced_by FROM abreast_deprecated WHERE resource = ?1")
                .and_then(|mut found| found.query_row([resource], |row| row.get(0)).optional())
                .map_err(failed(READ))?;
            (marked.is_some(), marked.unwrap_or_default())
        };
        let changed = labels.changed.map(|time| time.to_string());
        let replaced_by = Some(replaced_by).filter(|by| !by.is_empty());
        let none = [("", "")];
        let all = if labels.labels.is_empty() { &none[..] } else { &labels.labels };
        for (text, lang) in all {
            self.execute(
                "INSERT OR REPLACE INTO label VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![uri, text, lang, deprecated, replaced_by, changed],
            )?;
        }
        Ok(())
    }

    /// Records a change that left the content of a resource as it was. Its rows get the time of
    /// this change, which ends an older deprecation that only the Source reported.
    ///
    /// # Errors
    /// The system's own.
    pub fn touch(&mut self, resource: &str, changed: Option<Timestamp>) -> Result<(), LogError> {
        self.change(resource)?;
        let entity = self.entity(resource)?;
        let micros = changed.map(Timestamp::as_micros);
        let ended = self.execute(
            "DELETE FROM abreast_deprecated WHERE resource = ?1 AND time < ?2",
            params![resource, micros],
        )?;
        if ended > 0 {
            let sql = "UPDATE label SET deprecated = 0, replaced_by = NULL WHERE uri = ?1";
            self.execute(sql, [&entity])?;
        }
        let time = changed.map(|time| time.to_string());
        self.execute("UPDATE label SET changed = ?2 WHERE uri = ?1", params![entity, time])
            .map(drop)
    }

    fn remove_rows(&mut self, resource: &str) -> Result<(), LogError> {
        self.change(resource)?;
        let entity = self.entity(resource)?;
        self.execute("DELETE FROM label WHERE uri = ?1", [&entity])?;
        self.execute("DELETE FROM abreast_entity WHERE resource = ?1", [resource]).map(drop)
    }

    /// Removes the rows of a resource.
    ///
    /// # Errors
    /// The system's own.
    pub fn remove(&mut self, resource: &str) -> Result<(), LogError> {
        self.remove_rows(resource)?;
        self.execute("DELETE FROM abreast_deprecated WHERE resource = ?1", [resource]).map(drop)
    }

    /// Marks resources as deprecated in addition to their descriptions, each with the URIs to use
    /// instead and the time of the deprecation; a newer change ends the deprecation. Durable on
    /// return, except within a batch.
    ///
    /// # Errors
    /// The system's own.
    pub fn deprecate(
        &mut self,
        resources: &[(&str, &[String], Option<Timestamp>)],
    ) -> Result<(), LogError> {
        if !self.is_changing {
            self.connection.execute_batch("BEGIN IMMEDIATE").map_err(failed(WRITE))?;
        }
        let note = || -> Result<(), LogError> {
            for (resource, replaced_by, time) in resources {
                let entity = self.entity(resource)?;
                // A deprecation in the description takes precedence.
                let is_stated: bool = self
                    .connection
                    .prepare_cached(
                        "SELECT EXISTS (SELECT 1 FROM label WHERE uri = ?1 AND deprecated)
                         AND NOT EXISTS (SELECT 1 FROM abreast_deprecated WHERE resource = ?2)",
                    )
                    .and_then(|mut found| found.query_row([&entity, *resource], |row| row.get(0)))
                    .map_err(failed(READ))?;
                if is_stated {
                    continue;
                }
                let by = replaced_by.join(" ");
                self.execute(
                    "INSERT OR REPLACE INTO abreast_deprecated VALUES (?1, ?2, ?3)",
                    params![resource, by, time.map(Timestamp::as_micros)],
                )?;
                self.execute(
                    "UPDATE label SET deprecated = 1, replaced_by = nullif(?2, '') WHERE uri = ?1",
                    [&entity, &by],
                )?;
            }
            self.execute("UPDATE abreast_copy SET exported = 0", []).map(drop)
        };
        let noted = note();
        if !self.is_changing {
            let end = if noted.is_ok() { "COMMIT" } else { "ROLLBACK" };
            self.connection.execute_batch(end).map_err(failed(WRITE))?;
        }
        noted
    }

    /// Commits the batch, durably. Returns its number, or the number of the last batch if nothing
    /// changed.
    ///
    /// # Errors
    /// The system's own.
    pub fn end_batch(&mut self) -> Result<i64, LogError> {
        if self.is_changing {
            self.connection
                .execute_batch("UPDATE abreast_copy SET batch = batch + 1, exported = 0; COMMIT")
                .map_err(failed(WRITE))?;
            self.is_changing = false;
        }
        self.batch()
    }

    /// The resources of the last batch.
    ///
    /// # Errors
    /// The system's own.
    pub fn resources(&self) -> Result<Vec<String>, LogError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut found = self.connection.prepare("SELECT resource FROM abreast_batch")?;
            found.query_map([], |row| row.get(0))?.collect()
        };
        read().map_err(failed(READ))
    }

    /// Whether all rows were exported since the last change.
    ///
    /// # Errors
    /// The system's own.
    pub fn is_exported(&self) -> Result<bool, LogError> {
        self.connection
            .query_row("SELECT exported FROM abreast_copy", [], |row| row.get(0))
            .map_err(failed(READ))
    }

    /// Records that all rows were exported.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_exported(&self) -> Result<(), LogError> {
        self.execute("UPDATE abreast_copy SET exported = 1", []).map(drop)
    }

    /// Visits all rows, in the order of URIs.
    ///
    /// # Errors
    /// The system's own, or an error of `visit`.
    pub fn each<E: From<LogError>>(
        &self,
        visit: &mut dyn FnMut(&LabelRow) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = "SELECT uri, label, lang, deprecated, replaced_by, changed FROM label ORDER BY uri, lang, label";
        let mut statement = self.connection.prepare(sql).map_err(failed(READ))?;
        let mut rows = statement.query([]).map_err(failed(READ))?;
        while let Some(row) = rows.next().map_err(failed(READ))? {
            let read = || -> rusqlite::Result<LabelRow> {
                Ok(LabelRow {
                    uri: row.get(0)?,
                    label: row.get(1)?,
                    lang: row.get(2)?,
                    deprecated: row.get(3)?,
                    replaced_by: row.get(4)?,
                    changed: row.get(5)?,
                })
            };
            visit(&read().map_err(failed(READ))?)?;
        }
        Ok(())
    }
}
