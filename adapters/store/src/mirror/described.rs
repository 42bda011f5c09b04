//! Rows of a copy that stores descriptions in RDF: the description that an endpoint has of each
//! resource, and superseded parts of files.

use super::packed::Location;
use super::{Mirror, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::{OptionalExtension as _, params};

/// The description that was stored for a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The digest of the description.
    pub digest: Vec<u8>,
    /// IRI of the described entity, if it differs from the resource's URI.
    pub entity: Option<String>,
}

impl Mirror {
    /// The description that was stored for a resource.
    ///
    /// # Errors
    /// The system's own.
    pub fn description(&self, uri: &str) -> Result<Option<Described>, LogError> {
        let read =
            |row: &rusqlite::Row<'_>| Ok(Described { digest: row.get(0)?, entity: row.get(1)? });
        self.connection
            .prepare_cached("SELECT digest, entity FROM description WHERE uri = ?1")
            .and_then(|mut statement| statement.query_row([uri], read).optional())
            .map_err(failed(READ))
    }

    /// The resource whose stored description is of this entity.
    ///
    /// # Errors
    /// The system's own.
    pub fn describer(&self, entity: &str) -> Result<Option<String>, LogError> {
        let sql = "SELECT uri FROM description WHERE entity = ?1
                   UNION ALL SELECT uri FROM description WHERE uri = ?1 AND entity IS NULL LIMIT 1";
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([entity], |row| row.get(0)).optional())
            .map_err(failed(READ))
    }

    /// Records the description that was stored for a resource; `None` deletes the record.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_description(&self, uri: &str, stored: Option<&Described>) -> Result<(), LogError> {
        let done = match stored {
            Some(Described { digest, entity }) => self
                .connection
                .prepare_cached("INSERT OR REPLACE INTO description VALUES (?1, ?2, ?3)")
                .and_then(|mut statement| statement.execute(params![uri, digest, entity])),
            None => self
                .connection
                .prepare_cached("DELETE FROM description WHERE uri = ?1")
                .and_then(|mut statement| statement.execute([uri])),
        };
        done.map(|_| ()).map_err(failed(WRITE))
    }

    /// Visits resources with a stored description or record that are missing in the table
    /// `resource`.
    ///
    /// # Errors
    /// The system's own.
    pub fn each_without_row(&self, visit: &mut dyn FnMut(&str)) -> Result<(), LogError> {
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(
                "SELECT uri FROM (SELECT uri FROM packed UNION SELECT uri FROM description)
                 WHERE uri NOT IN (SELECT uri FROM resource)",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                visit(row.get_ref(0)?.as_str()?);
            }
            Ok(())
        };
        read().map_err(failed(READ))
    }

    /// Whether a description or record of a resource is stored, with or without a row: see
    /// [`Mirror::each_without_row`].
    ///
    /// # Errors
    /// The system's own.
    pub fn has_place(&self, uri: &str) -> Result<bool, LogError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM packed WHERE uri = ?1)
            OR EXISTS (SELECT 1 FROM description WHERE uri = ?1)";
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([uri], |row| row.get(0)))
            .map_err(failed(READ))
    }

    /// Records a superseded part of a segment, which is to be overwritten.
    ///
    /// # Errors
    /// The system's own.
    pub fn put_superseded(&self, part: &Location) -> Result<(), LogError> {
        let write = || -> rusqlite::Result<()> {
            let (offset, length) = (part.offset as i64, part.length as i64);
            self.connection
                .prepare_cached("INSERT OR REPLACE INTO superseded VALUES (?1, ?2, ?3)")?
                .execute(params![part.segment, offset, length])?;
            self.connection
                .prepare_cached("UPDATE segment SET dead = dead + ?2 WHERE number = ?1")?
                .execute(params![part.segment, length])?;
            Ok(())
        };
        write().map_err(failed(WRITE))
    }

    /// Appends superseded parts after a place, in their order.
    ///
    /// # Errors
    /// The system's own.
    pub fn superseded_after(
        &self,
        (segment, offset): (i64, i64),
        limit: usize,
        out: &mut Vec<Location>,
    ) -> Result<(), LogError> {
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(
                "SELECT segment, offset, length FROM superseded WHERE (segment, offset) > (?1, ?2)
                 ORDER BY segment, offset LIMIT ?3",
            )?;
            let mut rows = statement.query(params![segment, offset, limit as i64])?;
            while let Some(row) = rows.next()? {
                let (offset, length): (i64, i64) = (row.get(1)?, row.get(2)?);
                let (offset, length) = (offset as u64, length as u64);
                out.push(Location { segment: row.get(0)?, offset, length });
            }
            Ok(())
        };
        read().map_err(failed(READ))
    }

    /// Deletes superseded parts up to a position, which is included.
    ///
    /// # Errors
    /// The system's own.
    pub fn forget_superseded(&self, (segment, offset): (i64, i64)) -> Result<(), LogError> {
        self.connection
            .prepare_cached("DELETE FROM superseded WHERE (segment, offset) <= (?1, ?2)")
            .and_then(|mut statement| statement.execute([segment, offset]))
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Number, length and superseded bytes of each segment.
    ///
    /// # Errors
    /// The system's own.
    pub fn segments_in_use(&self) -> Result<Vec<(i64, u64, u64)>, LogError> {
        let read = || -> rusqlite::Result<Vec<(i64, u64, u64)>> {
            let mut statement = self
                .connection
                .prepare_cached("SELECT number, length, dead FROM segment ORDER BY number")?;
            let rows = statement.query_map([], |row| {
                let (length, dead): (i64, i64) = (row.get(1)?, row.get(2)?);
                Ok((row.get(0)?, length as u64, dead as u64))
            })?;
            rows.collect()
        };
        read().map_err(failed(READ))
    }

    /// Deletes the records of a segment that extend past its first `bytes` bytes, because its file
    /// is not longer, and the records that refer to bytes there. The segment then ends after the
    /// last remaining record, and a segment without records is deleted.
    ///
    /// # Errors
    /// The system's own.
    pub fn cut_segment(&self, number: i64, bytes: u64) -> Result<(), LogError> {
        let write = || -> rusqlite::Result<()> {
            let (end, place) = ("offset + length", params![number, bytes as i64]);
            for table in ["packed", "superseded"] {
                let sql = format!("DELETE FROM {table} WHERE segment = ?1 AND {end} > ?2");
                self.connection.execute(&sql, place)?;
            }
            self.connection.execute(
                "DELETE FROM packed WHERE of_segment = ?1 AND of_offset + of_length > ?2",
                place,
            )?;
            let sql = format!("SELECT max({end}) FROM packed WHERE segment = ?1");
            let end: Option<i64> = self.connection.query_row(&sql, [number], |row| row.get(0))?;
            let Some(end) = end else {
                let sql = "DELETE FROM superseded WHERE segment = ?1";
                self.connection.execute(sql, [number])?;
                self.connection.execute("DELETE FROM segment WHERE number = ?1", [number])?;
                return Ok(());
            };
            self.connection.execute(
                "UPDATE segment SET length = ?2, dead = min(dead, ?2) WHERE number = ?1",
                [number, end],
            )?;
            self.connection.execute(
                "DELETE FROM superseded WHERE segment = ?1 AND offset >= ?2",
                [number, end],
            )?;
            Ok(())
        };
        write().map_err(failed(WRITE))
    }

    /// Deletes the rows of a segment whose file is removed.
    ///
    /// # Errors
    /// The system's own.
    pub fn delete_segment(&self, number: i64) -> Result<(), LogError> {
        self.connection
            .prepare_cached("DELETE FROM segment WHERE number = ?1")
            .and_then(|mut statement| statement.execute([number]))
            .map(|_| ())
            .map_err(failed(WRITE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::Segment;

    #[test]
    fn superseded_parts_are_kept_until_they_are_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
        let part = |segment, offset| Location { segment, offset, length: 4 };
        for number in [1, 2] {
            let name = format!("s{number}");
            mirror.put_segment(&Segment { number, name, length: 100 }).unwrap();
        }
        for at in [part(2, 0), part(1, 8), part(1, 0)] {
            mirror.put_superseded(&at).unwrap();
        }
        // That a segment grows does not change what is known of its parts.
        mirror.put_segment(&Segment { number: 1, name: "s1".to_owned(), length: 110 }).unwrap();
        assert_eq!(mirror.segments_in_use().unwrap(), [(1, 110, 8), (2, 100, 4)]);
        let mut parts = Vec::new();
        mirror.superseded_after((0, 0), 2, &mut parts).unwrap();
        assert_eq!(parts, [part(1, 0), part(1, 8)]);
        mirror.forget_superseded((1, 8)).unwrap();
        parts.clear();
        mirror.superseded_after((0, 0), 10, &mut parts).unwrap();
        assert_eq!(parts, [part(2, 0)]);
        mirror.delete_segment(1).unwrap();
        assert_eq!(mirror.segments_in_use().unwrap().len(), 1);
    }

    #[test]
    fn a_description_is_found_by_its_resource_and_its_entity() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
        let stored = |digest: u8, entity: Option<&str>| {
            Some(Described { digest: vec![digest], entity: entity.map(str::to_owned) })
        };
        assert_eq!(mirror.description("http://h/a").unwrap(), None);
        mirror.set_description("http://h/a", stored(1, None).as_ref()).unwrap();
        assert_eq!(mirror.describer("http://h/a").unwrap().as_deref(), Some("http://h/a"));
        mirror.set_description("http://h/a", stored(2, Some("http://h/e")).as_ref()).unwrap();
        assert_eq!(mirror.description("http://h/a").unwrap(), stored(2, Some("http://h/e")));
        assert_eq!(mirror.describer("http://h/e").unwrap().as_deref(), Some("http://h/a"));
        assert_eq!(mirror.describer("http://h/a").unwrap(), None);
        mirror.set_description("http://h/a", None).unwrap();
        assert_eq!(mirror.description("http://h/a").unwrap(), None);
        assert_eq!(mirror.describer("http://h/e").unwrap(), None);
    }
}
