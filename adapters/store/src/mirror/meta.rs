//! Settings of a copy and facts about it, by name.

use super::{Mirror, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::{OptionalExtension as _, params};

impl Mirror {
    /// A setting or fact about the whole copy.
    ///
    /// # Errors
    /// The system's own.
    pub fn meta(&self, key: &str) -> Result<Option<String>, LogError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT value FROM meta WHERE key = ?1")
            .map_err(failed(READ))?;
        statement.query_row([key], |row| row.get(0)).optional().map_err(failed(READ))
    }

    /// Sets a fact; `None` deletes it.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_meta(&self, key: &str, value: Option<&str>) -> Result<(), LogError> {
        let done = match value {
            Some(value) => self
                .connection
                .prepare_cached("INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2")
                .and_then(|mut statement| statement.execute([key, value])),
            None => self
                .connection
                .prepare_cached("DELETE FROM meta WHERE key = ?1")
                .and_then(|mut statement| statement.execute([key])),
        };
        done.map(|_| ()).map_err(failed(WRITE))
    }

    /// Adds to a fact that is a number; an absent fact counts as 0.
    ///
    /// # Errors
    /// The system's own.
    pub fn add_to_meta(&self, key: &str, number: u64) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "INSERT INTO meta (key, value) VALUES (?1, CAST(?2 AS TEXT))
                 ON CONFLICT DO UPDATE SET value = CAST(value + ?2 AS TEXT)",
            )
            .and_then(|mut statement| statement.execute(params![key, number as i64]))
            .map(drop)
            .map_err(failed(WRITE))
    }
}
