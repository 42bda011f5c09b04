//! Invalid statements that were left out of the copy.

use super::{Mirror, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::params;

/// Invalid statements that were not copied, and where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOutStatements {
    /// Number of statements that were left out.
    pub statements: u64,
    /// Number of resources and files with such statements.
    pub places: u64,
    /// The first places, each with its first fault.
    pub first: Vec<(String, String)>,
}

impl Mirror {
    /// Notes the number of a resource's statements that were left out, and the first fault; with 0,
    /// deletes the note.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_left_out(&self, uri: &str, statements: u64, fault: &str) -> Result<(), LogError> {
        self.put_left_out(uri, false, statements, fault)
    }

    /// Notes how many statements in the files of a complete dataset were left out, and deletes all
    /// earlier notes.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_left_out_of_state(
        &self,
        name: &str,
        statements: u64,
        fault: &str,
    ) -> Result<(), LogError> {
        self.connection.execute("DELETE FROM left_out", []).map_err(failed(WRITE))?;
        self.put_left_out(name, true, statements, fault)
    }

    fn put_left_out(
        &self,
        uri: &str,
        is_file: bool,
        statements: u64,
        fault: &str,
    ) -> Result<(), LogError> {
        let write = || {
            if statements == 0 {
                return self
                    .connection
                    .prepare_cached("DELETE FROM left_out WHERE uri = ?1")?
                    .execute([uri]);
            }
            self.connection
                .prepare_cached("INSERT OR REPLACE INTO left_out VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![uri, is_file, statements as i64, fault])
        };
        write().map(drop).map_err(failed(WRITE))
    }

    /// Deletes the rows of resources that left the copy.
    ///
    /// # Errors
    /// The system's own.
    pub fn prune_left_out(&self) -> Result<(), LogError> {
        self.connection
            .execute(
                "DELETE FROM left_out WHERE is_file = 0 AND uri NOT IN (SELECT uri FROM resource)",
                [],
            )
            .map(drop)
            .map_err(failed(WRITE))
    }

    /// Counts the statements that were left out, and lists the first `limit` places.
    ///
    /// # Errors
    /// The system's own.
    pub fn left_out(&self, limit: usize) -> Result<LeftOutStatements, LogError> {
        let read = || -> rusqlite::Result<LeftOutStatements> {
            let (statements, places) = self.connection.query_row(
                "SELECT ifnull(sum(statements), 0), count(*) FROM left_out",
                [],
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
            )?;
            let mut first = self
                .connection
                .prepare_cached("SELECT uri, fault FROM left_out ORDER BY uri LIMIT ?1")?;
            let first = first.query_map([limit as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(LeftOutStatements {
                statements: statements as u64,
                places: places as u64,
                first: first.collect::<rusqlite::Result<_>>()?,
            })
        };
        read().map_err(failed(READ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::Row;

    #[test]
    fn what_is_left_out_is_counted_until_it_is_replaced() {
        let mirror = Mirror::scratch().unwrap();
        let uri = "http://h/a";
        mirror.put_row(&Row { uri: uri.to_owned(), ..Row::default() }).unwrap();
        mirror.set_left_out(uri, 2, "x").unwrap();
        mirror.set_left_out(uri, 3, "y").unwrap();
        mirror.set_left_out("http://h/gone", 1, "z").unwrap();
        let found = mirror.left_out(1).unwrap();
        assert_eq!((found.statements, found.places, found.first.len()), (4, 2, 1));
        mirror.prune_left_out().unwrap();
        let found = mirror.left_out(9).unwrap();
        assert_eq!(found.first, [(uri.to_owned(), "y".to_owned())]);
        mirror.set_left_out(uri, 0, "").unwrap();
        assert_eq!(mirror.left_out(9).unwrap(), LeftOutStatements::default());
        mirror.set_left_out(uri, 1, "x").unwrap();
        mirror.set_left_out_of_state("http://h/dump", 7, "w").unwrap();
        mirror.prune_left_out().unwrap();
        assert_eq!(mirror.left_out(9).unwrap().statements, 7);
        mirror.set_left_out_of_state("http://h/dump", 0, "").unwrap();
        assert_eq!(mirror.left_out(9).unwrap().places, 0);
    }
}
