//! Statements that change a set's versions, prepared when first needed: most sets do not record
//! versions.

use crate::log::set_rows::{Encoded, kind_of};
use crate::log::set_state::SetState;
use crate::log::sqlite::row_sum::{self, RowKind};
use crate::log::sqlite::rows::content;
use crate::log::sqlite::tables::SqliteTables;
use crate::log::tables::VersionTables;
use crate::log::version_state::{Counted, Dropped, PastChange, References};
use crate::log::versions::BASE_TIME;
use abreast_core::{ContentId, Position};
use abreast_webtypes::Timestamp;
use rusqlite::{OptionalExtension as _, params};

impl SqliteTables<'_> {
    /// Stores the changes by the batch to the set's values about versions.
    pub(crate) fn store_versions(&mut self, set_state: &mut SetState) -> rusqlite::Result<()> {
        let new = set_state.versions;
        if new == set_state.stored_versions {
            return Ok(());
        }
        self.connection.prepare_cached(
                "UPDATE sets SET versions = ?2, kept_bytes = ?3, counted_as = ?4, counted = ?5, aged = ?6, sized = ?7, \
                 begun = ?8, kept_since = ?9 WHERE id = ?1",
            )?
            .execute(params![
                self.set,
                new.keep,
                new.kept_bytes as i64,
                new.collector.counted_as,
                new.collector.counted.0 as i64,
                new.collector.aged.0 as i64,
                new.collector.sized.0 as i64,
                new.begun.map(|begun| begun.0 as i64),
                new.since.map(|since| since.0 as i64),
            ])?;
        set_state.stored_versions = new;
        Ok(())
    }

    /// Deletes contents that are not needed any more.
    pub(crate) fn forget_contents(&mut self, ids: &[ContentId]) -> rusqlite::Result<()> {
        let mut statement =
            self.connection.prepare_cached("DELETE FROM contents WHERE id = ?1 AND needed = 0")?;
        for id in ids {
            statement.execute([id.as_bytes()])?;
        }
        Ok(())
    }

    /// Changes the number of rows that need these bytes; returns by how many bytes the needed
    /// contents grew.
    fn count_reference(&mut self, id: ContentId, counted: Counted) -> rusqlite::Result<i64> {
        let before = self
            .connection
            .prepare_cached("SELECT needed, length FROM contents WHERE id = ?1 AND set_id = ?2")?
            .query_row(params![id.as_bytes(), self.set], |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
            })
            .optional()?;
        let Some((needed, length, grown)) = counted.apply(before) else { return Ok(0) };
        let sql = if before.is_some() {
            "UPDATE contents SET needed = ?3, length = ?4 WHERE id = ?1 AND set_id = ?2"
        } else {
            "INSERT INTO contents (id, set_id, needed, length) VALUES (?1, ?2, ?3, ?4)"
        };
        self.connection.prepare_cached(sql)?.execute(params![
            id.as_bytes(),
            self.set,
            needed,
            length as i64
        ])?;
        Ok(grown)
    }
}

impl VersionTables for SqliteTables<'_> {
    type Error = rusqlite::Error;

    fn add_version(
        &mut self,
        key: &str,
        at: Position,
        time: Timestamp,
        new: Option<&Encoded>,
    ) -> rusqlite::Result<()> {
        let state = new.map(|new| new.state);
        self.connection.prepare_cached(
                "INSERT OR REPLACE INTO versions (set_id, key, time, position, modified, length, media_type, encoding, \
                 digests, content, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                self.set,
                key,
                time.as_micros(),
                at.0 as i64,
                state.map(|state| state.modified.as_micros()),
                state.and_then(|state| state.length).map(|length| length as i64),
                state.and_then(|state| state.media_type.as_deref()),
                state.and_then(|state| state.encoding.as_deref()),
                new.map(|new| new.digests.as_slice()),
                new.and_then(Encoded::content),
                row_sum::of_row(key, &[time.as_micros(), at.0 as i64], new, RowKind::Version, &[]),
            ])?;
        Ok(())
    }

    fn has_versions(&mut self, key: &str) -> rusqlite::Result<bool> {
        self.connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM versions WHERE set_id = ?1 AND key = ?2)",
            )?
            .query_row(params![self.set, key], |row| row.get(0))
    }

    fn version_content(&mut self, key: &str, time: Timestamp) -> rusqlite::Result<Option<Dropped>> {
        self.connection
            .prepare_cached(
                "SELECT content FROM versions WHERE set_id = ?1 AND key = ?2 AND time = ?3",
            )?
            .query_row(params![self.set, key, time.as_micros()], |row| content(row, 0))
            .optional()
    }

    fn time_of(&mut self, at: Position) -> rusqlite::Result<Option<Timestamp>> {
        self.connection
            .prepare_cached("SELECT time FROM changes WHERE set_id = ?1 AND position = ?2")?
            .query_row(params![self.set, at.0 as i64], |row| row.get(0).map(Timestamp::from_micros))
            .optional()
    }

    fn count_references(&mut self, counted: References) -> rusqlite::Result<i64> {
        let mut grown = 0;
        for (id, counted) in counted {
            grown += self.count_reference(id, counted)?;
        }
        Ok(grown)
    }

    fn changes_after(
        &mut self,
        after: Position,
        limit: usize,
    ) -> rusqlite::Result<Vec<PastChange>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT position, time, kind, key FROM changes WHERE set_id = ?1 AND position > ?2 ORDER BY position \
             LIMIT ?3",
        )?;
        let rows = statement.query_map(params![self.set, after.0 as i64, limit as i64], |row| {
            let number = row.get(2)?;
            Ok(PastChange {
                position: Position(row.get::<_, i64>(0)? as u64),
                time: Timestamp::from_micros(row.get(1)?),
                kind: kind_of(number).ok_or(rusqlite::Error::IntegralValueOutOfRange(2, number))?,
                key: row.get(3)?,
            })
        })?;
        rows.collect()
    }

    fn newest(&mut self, key: &str, number: u32) -> rusqlite::Result<Option<Timestamp>> {
        self.connection.prepare_cached("SELECT time FROM versions WHERE set_id = ?1 AND key = ?2 ORDER BY time DESC LIMIT 1 OFFSET ?3")?
            .query_row(params![self.set, key, number.saturating_sub(1)], |row| row.get(0).map(Timestamp::from_micros))
            .optional()
    }

    fn drop_before(
        &mut self,
        key: &str,
        time: Timestamp,
        limit: usize,
    ) -> rusqlite::Result<Vec<Dropped>> {
        if time == BASE_TIME {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare_cached(
            "DELETE FROM versions WHERE set_id = ?1 AND key = ?2 AND time IN \
             (SELECT time FROM versions WHERE set_id = ?1 AND key = ?2 AND time < ?3 ORDER BY time LIMIT ?4) \
             RETURNING content",
        )?;
        let rows = statement
            .query_map(params![self.set, key, time.as_micros(), limit as i64], |row| {
                content(row, 0)
            })?;
        rows.collect()
    }
}
