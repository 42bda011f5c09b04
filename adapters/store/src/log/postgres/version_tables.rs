//! The statements that change a set's versions.

use crate::log::postgres::rows::{bytes_of, content, key_hash, position, time};
use crate::log::postgres::tables::PostgresTables;
use crate::log::set_rows::{Encoded, kind_of};
use crate::log::tables::VersionTables;
use crate::log::version_state::{Dropped, PastChange, References};
use crate::log::versions::BASE_TIME;
use crate::postgres::failure::Failure;
use crate::postgres::values::params;
use abreast_core::Position;
use abreast_webtypes::Timestamp;
use std::collections::HashMap;

impl PostgresTables<'_> {
    /// Reads the newest versions of the part, unless they were read.
    fn read_newest(&mut self) -> Result<(), Failure> {
        if self.newest.hashes.is_empty() {
            return Ok(());
        }
        let hashes = std::mem::take(&mut self.newest.hashes);
        let positions = std::mem::take(&mut self.newest.positions);
        let rows = self.statements.query(
            "SELECT key_hash, time, content FROM unnest($2) AS part (key_hash) CROSS JOIN LATERAL \
             (SELECT time, content FROM abreast.versions WHERE set_id = $1 AND versions.key_hash = part.key_hash \
             ORDER BY time DESC LIMIT 1) AS newest",
            &params![self.set => INT8, hashes.clone() => BYTEA_ARRAY],
        )?;
        self.newest.versions.extend(hashes.into_iter().map(|hash| (hash, None)));
        for row in &rows {
            let version = (time(row, 1)?, content(row, 2)?);
            self.newest.versions.insert(row.try_get(0)?, Some(version));
        }
        if !positions.is_empty() {
            let rows = self.statements.query(
                "SELECT position, time FROM abreast.changes WHERE set_id = $1 AND position = ANY ($2)",
                &params![self.set => INT8, positions => INT8_ARRAY],
            )?;
            for row in &rows {
                self.newest.times.insert(position(row, 0)?, time(row, 1)?);
            }
        }
        Ok(())
    }
}

impl VersionTables for PostgresTables<'_> {
    type Error = Failure;

    fn add_version(
        &mut self,
        key: &str,
        at: Position,
        time: Timestamp,
        new: Option<&Encoded<'_>>,
    ) -> Result<(), Failure> {
        let state = new.map(|new| new.state);
        let hash = key_hash(key);
        if let Some(newest) = self.newest.versions.get_mut(&hash) {
            *newest = Some((time, new.and_then(|new| new.content)));
        }
        self.newest.times.insert(at, time);
        self.statements.write(
            "INSERT INTO abreast.versions (set_id, key_hash, time, position, modified, length, media_type, encoding, \
             digests, content) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             ON CONFLICT (set_id, key_hash, time) DO UPDATE SET position = excluded.position, \
             modified = excluded.modified, length = excluded.length, media_type = excluded.media_type, \
             encoding = excluded.encoding, digests = excluded.digests, content = excluded.content",
            params![
                self.set => INT8,
                hash => BYTEA,
                time.as_micros() => INT8,
                at.0 as i64 => INT8,
                state.map(|state| state.modified.as_micros()) => INT8,
                state.and_then(|state| state.length).map(|length| length as i64) => INT8,
                state.and_then(|state| state.media_type.clone()) => TEXT,
                state.and_then(|state| state.encoding.clone()) => TEXT,
                new.map(|new| new.digests.clone()) => BYTEA,
                bytes_of(new.and_then(|new| new.content)) => BYTEA,
            ],
        )
    }

    fn has_versions(&mut self, key: &str) -> Result<bool, Failure> {
        self.read_newest()?;
        if let Some(newest) = self.newest.versions.get(&key_hash(key)) {
            return Ok(newest.is_some());
        }
        let found = self.statements.query_first(
            "SELECT 1 FROM abreast.versions WHERE set_id = $1 AND key_hash = $2 LIMIT 1",
            &params![self.set => INT8, key_hash(key) => BYTEA],
        )?;
        Ok(found.is_some())
    }

    fn version_content(&mut self, key: &str, time: Timestamp) -> Result<Option<Dropped>, Failure> {
        self.read_newest()?;
        // No version is newer than the present state of a resource.
        if let Some(newest) = self.newest.versions.get(&key_hash(key)) {
            return Ok(newest.filter(|newest| newest.0 == time).map(|newest| newest.1));
        }
        let found = self.statements.query_first(
            "SELECT content FROM abreast.versions WHERE set_id = $1 AND key_hash = $2 AND time = $3",
            &params![self.set => INT8, key_hash(key) => BYTEA, time.as_micros() => INT8],
        )?;
        found.map(|row| content(&row, 0)).transpose()
    }

    fn time_of(&mut self, at: Position) -> Result<Option<Timestamp>, Failure> {
        self.read_newest()?;
        if let Some(time) = self.newest.times.get(&at) {
            return Ok(Some(*time));
        }
        let found = self.statements.query_first(
            "SELECT time FROM abreast.changes WHERE set_id = $1 AND position = $2",
            &params![self.set => INT8, at.0 as i64 => INT8],
        )?;
        found.map(|row| time(&row, 0)).transpose()
    }

    fn count_references(&mut self, counted: References) -> Result<i64, Failure> {
        let ids: Vec<Vec<u8>> = counted.keys().map(|id| id.as_bytes().to_vec()).collect();
        let rows = self.statements.query(
            "SELECT id, needed, length FROM abreast.contents WHERE set_id = $1 AND id = ANY ($2)",
            &params![self.set => INT8, ids => BYTEA_ARRAY],
        )?;
        let mut known = HashMap::with_capacity(rows.len());
        for row in &rows {
            let values = (row.try_get::<_, i64>(1)?, row.try_get::<_, i64>(2)? as u64);
            known.insert(content(row, 0)?, values);
        }
        let (mut ids, mut needed, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        let mut grown = 0;
        for (id, counted) in counted {
            let before = known.get(&Some(id)).copied();
            let Some((now, length, more)) = counted.apply(before) else { continue };
            ids.push(id.as_bytes().to_vec());
            needed.push(now);
            lengths.push(length as i64);
            grown += more;
        }
        if !ids.is_empty() {
            self.statements.write(
                "INSERT INTO abreast.contents (set_id, id, needed, length) SELECT $1, * FROM unnest($2, $3, $4) \
                 ON CONFLICT (set_id, id) DO UPDATE SET needed = excluded.needed, length = excluded.length",
                params![self.set => INT8, ids => BYTEA_ARRAY, needed => INT8_ARRAY, lengths => INT8_ARRAY],
            )?;
        }
        Ok(grown)
    }

    fn changes_after(&mut self, after: Position, limit: usize) -> Result<Vec<PastChange>, Failure> {
        let rows = self.statements.query(
            "SELECT position, time, kind, key FROM abreast.changes WHERE set_id = $1 AND position > $2 \
             ORDER BY position LIMIT $3",
            &params![self.set => INT8, after.0 as i64 => INT8, limit as i64 => INT8],
        )?;
        let change = |row: &tokio_postgres::Row| {
            let number = row.try_get(2)?;
            let unknown = || Failure::Damaged(format!("a change of the unknown kind {number}"));
            Ok(PastChange {
                position: position(row, 0)?,
                time: time(row, 1)?,
                kind: kind_of(number).ok_or_else(unknown)?,
                key: row.try_get(3)?,
            })
        };
        rows.iter().map(change).collect()
    }

    fn newest(&mut self, key: &str, number: u32) -> Result<Option<Timestamp>, Failure> {
        let found = self.statements.query_first(
            "SELECT time FROM abreast.versions WHERE set_id = $1 AND key_hash = $2 ORDER BY time DESC LIMIT 1 OFFSET $3",
            &params![self.set => INT8, key_hash(key) => BYTEA, i64::from(number.saturating_sub(1)) => INT8],
        )?;
        found.map(|row| time(&row, 0)).transpose()
    }

    fn drop_before(
        &mut self,
        key: &str,
        time: Timestamp,
        limit: usize,
    ) -> Result<Vec<Dropped>, Failure> {
        if time == BASE_TIME {
            return Ok(Vec::new());
        }
        let rows = self.statements.query(
            "DELETE FROM abreast.versions WHERE set_id = $1 AND key_hash = $2 AND time IN \
             (SELECT time FROM abreast.versions WHERE set_id = $1 AND key_hash = $2 AND time < $3 ORDER BY time LIMIT $4) \
             RETURNING content",
            &params![
                self.set => INT8, key_hash(key) => BYTEA, time.as_micros() => INT8, limit as i64 => INT8,
            ],
        )?;
        rows.iter().map(|row| content(row, 0)).collect()
    }
}
