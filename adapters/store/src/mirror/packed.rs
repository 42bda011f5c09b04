//! Rows of a packed copy: its files, their valid length, and the position of each resource's
//! record.

use super::{Mirror, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::{OptionalExtension as _, params};
use std::ops::RangeInclusive;

/// A file of a packed copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Number of the segment, from 1.
    pub number: i64,
    /// Name of the segment's file.
    pub name: String,
    /// Valid and durable bytes of the file. Bytes after this length belong to an unfinished write.
    pub length: u64,
}

/// The position of a record within its segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// The number of its segment.
    pub segment: i64,
    /// Offset of the record's first byte in the segment.
    pub offset: u64,
    /// Length of the record in the segment, in bytes.
    pub length: u64,
}

/// The records with the bytes of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Packed {
    /// The newest record of the resource.
    pub record: Location,
    /// The record with the bytes, if the newest record only refers to another.
    pub original: Option<Location>,
}

impl Packed {
    /// The record that has the bytes.
    pub fn bytes_at(&self) -> Location {
        self.original.unwrap_or(self.record)
    }
}

impl Mirror {
    /// Every segment, by number.
    ///
    /// # Errors
    /// The system's own.
    pub fn segments(&self) -> Result<Vec<Segment>, LogError> {
        let read = || -> rusqlite::Result<Vec<Segment>> {
            let mut statement = self
                .connection
                .prepare_cached("SELECT number, name, length FROM segment ORDER BY number")?;
            let rows = statement.query_map([], |row| {
                Ok(Segment {
                    number: row.get(0)?,
                    name: row.get(1)?,
                    length: row.get::<_, i64>(2)? as u64,
                })
            })?;
            rows.collect()
        };
        read().map_err(failed(READ))
    }

    /// Records the valid length of a segment.
    ///
    /// # Errors
    /// The system's own.
    pub fn put_segment(&self, segment: &Segment) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "INSERT INTO segment (number, name, length) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET length = ?3",
            )
            .and_then(|mut statement| statement.execute(params![segment.number, segment.name, segment.length as i64]))
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// The position of a resource's record.
    ///
    /// # Errors
    /// The system's own.
    pub fn packed(&self, uri: &str) -> Result<Option<Packed>, LogError> {
        let location = |row: &rusqlite::Row<'_>, at: usize| -> rusqlite::Result<Option<Location>> {
            let Some(segment) = row.get(at)? else { return Ok(None) };
            let (offset, length): (i64, i64) = (row.get(at + 1)?, row.get(at + 2)?);
            Ok(Some(Location { segment, offset: offset as u64, length: length as u64 }))
        };
        self.connection
            .prepare_cached(
                "SELECT segment, offset, length, of_segment, of_offset, of_length FROM packed WHERE uri = ?1",
            )
            .and_then(|mut statement| {
                let read = statement.query_row([uri], |row| {
                    Ok(Packed { record: location(row, 0)?.unwrap_or_default(), original: location(row, 3)? })
                });
                read.optional()
            })
            .map_err(failed(READ))
    }

    /// Visits the records in a range of segments with their resources, in the order of their
    /// positions. Reads all positions, so it is too slow for every run.
    ///
    /// # Errors
    /// The system's own.
    pub fn packed_in(
        &self,
        segments: RangeInclusive<i64>,
        visit: &mut dyn FnMut(&str, Location),
    ) -> Result<(), LogError> {
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(
                "SELECT uri, segment, offset, length FROM packed WHERE segment BETWEEN ?1 AND ?2
                 ORDER BY segment, offset",
            )?;
            let mut rows = statement.query([segments.start(), segments.end()])?;
            while let Some(row) = rows.next()? {
                let (offset, length): (i64, i64) = (row.get(2)?, row.get(3)?);
                let (offset, length) = (offset as u64, length as u64);
                visit(row.get_ref(0)?.as_str()?, Location { segment: row.get(1)?, offset, length });
            }
            Ok(())
        };
        read().map_err(failed(READ))
    }

    /// Records the position of a resource's record.
    ///
    /// # Errors
    /// The system's own.
    pub fn put_packed(&self, uri: &str, packed: &Packed) -> Result<(), LogError> {
        let Packed { record, original } = packed;
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO packed VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
            .and_then(|mut statement| {
                statement.execute(params![
                    uri,
                    record.segment,
                    record.offset as i64,
                    record.length as i64,
                    original.map(|original| original.segment),
                    original.map(|original| original.offset as i64),
                    original.map(|original| original.length as i64),
                ])
            })
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// As [`Mirror::put_packed`] for a resource without a record; returns false if it has one.
    ///
    /// # Errors
    /// The system's own.
    pub fn put_first_packed(&self, uri: &str, record: &Location) -> Result<bool, LogError> {
        self.connection
            .prepare_cached(
                "INSERT INTO packed (uri, segment, offset, length) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )
            .and_then(|mut statement| {
                let Location { segment, offset, length } = *record;
                statement.execute(params![uri, segment, offset as i64, length as i64])
            })
            .map(|count| count > 0)
            .map_err(failed(WRITE))
    }

    /// Deletes the position of a resource's record.
    ///
    /// # Errors
    /// The system's own.
    pub fn delete_packed(&self, uri: &str) -> Result<(), LogError> {
        self.connection
            .prepare_cached("DELETE FROM packed WHERE uri = ?1")
            .and_then(|mut statement| statement.execute([uri]))
            .map(|_| ())
            .map_err(failed(WRITE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_and_places_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
        let segment = |length| Segment { number: 1, name: "x-1".to_owned(), length };
        mirror.put_segment(&segment(5)).unwrap();
        mirror.put_segment(&segment(9)).unwrap();
        assert_eq!(mirror.segments().unwrap(), [segment(9)]);
        let record = Location { segment: 1, offset: 5, length: 4 };
        let own = Packed { record, original: None };
        mirror.put_packed("http://h/a", &own).unwrap();
        assert_eq!(mirror.packed("http://h/a").unwrap(), Some(own));
        assert_eq!(own.bytes_at(), record);
        let original = Location { segment: 1, offset: 0, length: 5 };
        let referring = Packed { record, original: Some(original) };
        mirror.put_packed("http://h/a", &referring).unwrap();
        assert_eq!(mirror.packed("http://h/a").unwrap().unwrap().bytes_at(), original);
        assert!(!mirror.put_first_packed("http://h/a", &record).unwrap());
        assert_eq!(mirror.packed("http://h/a").unwrap(), Some(referring));
        mirror.put_packed("http://h/b", &Packed { record: original, original: None }).unwrap();
        let mut found = Vec::new();
        for segments in [0..=1, 2..=9] {
            mirror.packed_in(segments, &mut |uri, at| found.push((uri.to_owned(), at))).unwrap();
        }
        let expected = [("http://h/b", original), ("http://h/a", record)];
        assert_eq!(found, expected.map(|(uri, at)| (uri.to_owned(), at)));
        mirror.delete_packed("http://h/a").unwrap();
        assert_eq!(mirror.packed("http://h/a").unwrap(), None);
        assert!(mirror.put_first_packed("http://h/a", &record).unwrap());
        assert_eq!(mirror.packed("http://h/a").unwrap(), Some(own));
    }
}
