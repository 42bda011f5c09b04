//! Resources that are in the copy although the present filters exclude them.

use super::rows::{COLUMNS, Row, read_row};
use super::{Mirror, PendingAction, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::{OptionalExtension as _, params};

impl Mirror {
    /// Records whether the filters exclude a resource of the copy; returns whether this is new.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_excluded(&self, uri: &str, excluded: bool) -> Result<bool, LogError> {
        let sql = if excluded {
            "INSERT OR IGNORE INTO excluded VALUES (?1)"
        } else {
            "DELETE FROM excluded WHERE uri = ?1"
        };
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([uri]))
            .map(|count| count > 0)
            .map_err(failed(WRITE))
    }

    /// Whether the resource is recorded as excluded.
    ///
    /// # Errors
    /// The system's own.
    pub fn is_excluded(&self, uri: &str) -> Result<bool, LogError> {
        self.connection
            .prepare_cached("SELECT 1 FROM excluded WHERE uri = ?1")
            .and_then(|mut statement| statement.query_row([uri], |_| Ok(())).optional())
            .map(|found| found.is_some())
            .map_err(failed(READ))
    }

    /// Whether any resource of the copy is excluded. Deletes the records of resources that left the
    /// copy.
    ///
    /// # Errors
    /// The system's own.
    pub fn has_excluded(&self) -> Result<bool, LogError> {
        self.connection
            .execute("DELETE FROM excluded WHERE NOT EXISTS (SELECT 1 FROM resource r WHERE r.uri = excluded.uri)", [])
            .map_err(failed(WRITE))?;
        self.connection
            .query_row("SELECT EXISTS (SELECT 1 FROM excluded)", [], |row| row.get(0))
            .map_err(failed(READ))
    }

    /// Plans to delete every excluded resource, or removes these plans; returns the number of
    /// resources.
    ///
    /// # Errors
    /// The system's own.
    pub fn plan_excluded(&self, delete: bool) -> Result<u64, LogError> {
        let kept = "SELECT uri FROM excluded WHERE uri IN (SELECT uri FROM resource)";
        if delete {
            return self.plan_deletes(PendingAction::Delete, kept);
        }
        let sql = "DELETE FROM pending WHERE action >= 2 AND uri IN (SELECT uri FROM excluded)";
        self.connection.execute(sql, []).map(|count| count as u64).map_err(failed(WRITE))
    }

    /// Appends resources of the copy that were noted as unseen, after a URI, in order.
    ///
    /// # Errors
    /// The system's own.
    pub fn unseen_after(
        &self,
        uri: &str,
        limit: usize,
        out: &mut Vec<Row>,
    ) -> Result<(), LogError> {
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM temp.unseen u JOIN resource r ON r.uri = u.uri
                 WHERE u.uri > ?1 ORDER BY u.uri LIMIT ?2"
            ))?;
            let mut rows = statement.query(params![uri, limit as i64])?;
            while let Some(row) = rows.next()? {
                out.push(read_row(row, 0)?);
            }
            Ok(())
        };
        read().map_err(failed(READ))
    }
}
