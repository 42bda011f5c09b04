//! The statements that change a set's rows: prepared once, used inside the writer's transaction.

use crate::log::set_rows::{Encoded, LogRow, RowWrite, StoredRow, StoredRows, kind_number};
use crate::log::set_state::SetState;
use crate::log::shards::{LiveShard, SplitPoint, entry_bytes};
use crate::log::sqlite::row_sum::{self, RowKind};
use crate::log::sqlite::rows::{content, read_resource, resource_columns};
use crate::log::tables::Tables;
use abreast_core::batch::{Name, Now};
use abreast_core::{ContentId, Page, Position, Resource, SetId, State};
use abreast_webtypes::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Row, params};
use std::collections::HashMap;

/// The statements, for one set at a time.
pub(crate) struct SqliteTables<'c> {
    pub(crate) set: i64,
    pub(crate) connection: &'c Connection,
    row: CachedStatement<'c>,
    name: CachedStatement<'c>,
    insert: CachedStatement<'c>,
    update: CachedStatement<'c>,
    refresh: CachedStatement<'c>,
    delete: CachedStatement<'c>,
    set_witness: CachedStatement<'c>,
    has_tombstones: CachedStatement<'c>,
    add_tombstone: CachedStatement<'c>,
    remove_tombstone: CachedStatement<'c>,
    record: CachedStatement<'c>,
    put_page: CachedStatement<'c>,
    put_shard: CachedStatement<'c>,
    rows_from: CachedStatement<'c>,
    rows_between: CachedStatement<'c>,
    remember: CachedStatement<'c>,
}

impl<'c> SqliteTables<'c> {
    pub(crate) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            set: 0,
            connection,
            row: connection.prepare_cached(concat!(
                "SELECT ",
                resource_columns!(),
                " FROM resources WHERE set_id = ?1 AND key = ?2"
            ))?,
            name: connection.prepare_cached("SELECT time FROM idempotency WHERE set_id = ?1 AND key = ?2")?,
            insert: connection.prepare_cached(
                "INSERT INTO resources (set_id, key, position, modified, length, media_type, encoding, digests, links, \
                 witness, content, sum, description, deprecated) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?,
            update: connection.prepare_cached(
                "UPDATE resources SET position = ?3, modified = ?4, length = ?5, media_type = ?6, encoding = ?7, \
                 digests = ?8, links = ?9, witness = ?10, content = ?11, sum = ?12, description = ?13, deprecated = ?14 \
                 WHERE set_id = ?1 AND key = ?2",
            )?,
            refresh: connection
                .prepare_cached("UPDATE resources SET witness = ?3, content = ?4 WHERE set_id = ?1 AND key = ?2")?,
            delete: connection.prepare_cached("DELETE FROM resources WHERE set_id = ?1 AND key = ?2")?,
            set_witness: connection
                .prepare_cached("UPDATE resources SET witness = ?3 WHERE set_id = ?1 AND key = ?2")?,
            has_tombstones: connection.prepare_cached("SELECT 1 FROM tombstones WHERE set_id = ?1 LIMIT 1")?,
            add_tombstone: connection.prepare_cached(
                "INSERT INTO tombstones (set_id, key, position) VALUES (?1, ?2, ?3) \
                 ON CONFLICT DO UPDATE SET position = excluded.position",
            )?,
            remove_tombstone: connection.prepare_cached("DELETE FROM tombstones WHERE set_id = ?1 AND key = ?2")?,
            record: connection.prepare_cached(
                "INSERT INTO changes (set_id, position, time, kind, key, modified, length, media_type, encoding, \
                 digests, links, content, sum, description, note) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            )?,
            put_page: connection.prepare_cached(
                "INSERT INTO pages (set_id, number, after, last, from_time, until_time) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                 ON CONFLICT DO UPDATE SET last = excluded.last, from_time = excluded.from_time, \
                 until_time = excluded.until_time WHERE last IS NULL",
            )?,
            put_shard: connection.prepare_cached(
                "INSERT INTO shards (set_id, id, start_key, end_key, resources, bytes, version, time, retired) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
                 ON CONFLICT DO UPDATE SET end_key = excluded.end_key, resources = excluded.resources, \
                 bytes = excluded.bytes, version = excluded.version, time = excluded.time, retired = excluded.retired",
            )?,
            rows_from: connection.prepare_cached(
                "SELECT media_type, encoding, digests, links, key FROM resources \
                 WHERE set_id = ?1 AND key >= ?2 ORDER BY key",
            )?,
            rows_between: connection.prepare_cached(
                "SELECT media_type, encoding, digests, links, key FROM resources \
                 WHERE set_id = ?1 AND key >= ?2 AND key < ?3 ORDER BY key",
            )?,
            remember: connection.prepare_cached(
                "INSERT INTO idempotency (set_id, key, position, time) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT DO UPDATE SET position = excluded.position, time = excluded.time",
            )?,
        })
    }

    /// The same statements for another set.
    pub(crate) fn of(&mut self, set: SetId) -> &mut Self {
        self.set = set.0;
        self
    }

    /// Stores the shards that the batch changed.
    pub(crate) fn store_shards(&mut self, set_state: &mut SetState) -> rusqlite::Result<()> {
        for (place, shard) in
            set_state.shards.list().iter().enumerate().filter(|(_, shard)| shard.dirty)
        {
            self.put_shard(shard, set_state.shards.end_of(place), false)?;
        }
        set_state.shards.stored();
        Ok(())
    }

    /// Replaces a resource's fingerprint, if the resource is known.
    pub(crate) fn set_witness(&mut self, key: &str, witness: &[u8]) -> rusqlite::Result<()> {
        self.set_witness.execute(params![self.set, key, witness])?;
        Ok(())
    }

    pub(crate) fn put_page(&mut self, page: &Page) -> rusqlite::Result<()> {
        self.put_page.execute(params![
            self.set,
            page.number as i64,
            page.after.0 as i64,
            page.last.map(|last| last.0 as i64),
            page.from.as_micros(),
            page.until.map(Timestamp::as_micros),
        ])?;
        Ok(())
    }

    fn put_shard(
        &mut self,
        shard: &LiveShard,
        end: Option<&str>,
        retired: bool,
    ) -> rusqlite::Result<()> {
        self.put_shard.execute(params![
            self.set,
            shard.id.0 as i64,
            shard.start,
            end,
            shard.resources as i64,
            shard.bytes as i64,
            shard.version.0 as i64,
            shard.time.as_micros(),
            retired,
        ])?;
        Ok(())
    }
}

impl Tables for SqliteTables<'_> {
    /// Few enough to stay in the processor's cache.
    const PART: usize = 250;

    fn rows<'k>(&mut self, keys: &[&'k str]) -> rusqlite::Result<StoredRows<'k>> {
        let mut found = HashMap::new();
        for key in keys {
            let mut rows = self.row.query(params![self.set, key])?;
            let Some(row) = rows.next()? else { continue };
            let mut resource = Box::<Resource>::default();
            let is_damaged = read_resource(row, &mut resource).is_err();
            if is_damaged {
                // Every new change replaces the row: a resource never has this length. The stored
                // bytes are released as for other rows.
                let state = State {
                    length: Some(u64::MAX),
                    content: content(row, 6).ok().flatten(),
                    ..State::default()
                };
                *resource = Resource { state, ..Resource::default() };
            }
            found.insert(*key, StoredRow { resource, bytes: row_bytes(row, key, 2)?, is_damaged });
        }
        Ok(found)
    }

    fn names<'k>(&mut self, names: &[&'k str]) -> rusqlite::Result<HashMap<&'k str, Timestamp>> {
        let mut found = HashMap::new();
        for name in names {
            let mut rows = self.name.query(params![self.set, name])?;
            if let Some(row) = rows.next()? {
                found.insert(*name, Timestamp::from_micros(row.get(0)?));
            }
        }
        Ok(found)
    }

    fn record(&mut self, changes: &[LogRow<'_>]) -> rusqlite::Result<()> {
        for change in changes {
            let LogRow { position, time, key, new, .. } = *change;
            let (state, kind) = (new.map(|new| new.state), kind_number(change.kind));
            let (description, note) = (change.description(), change.note.as_deref());
            let numbers = [kind, time.as_micros(), position.0 as i64];
            self.record.execute(params![
                self.set,
                position.0 as i64,
                time.as_micros(),
                kind,
                key,
                state.map(|state| state.modified.as_micros()),
                state.and_then(|state| state.length).map(|length| length as i64),
                state.and_then(|state| state.media_type.as_deref()),
                state.and_then(|state| state.encoding.as_deref()),
                new.map(|new| new.digests.as_slice()),
                new.and_then(|new| new.links.as_deref()),
                new.and_then(Encoded::content),
                row_sum::of_row(key, &numbers, new, RowKind::Change, &[description, note]),
                description,
                note,
            ])?;
        }
        Ok(())
    }

    fn close_pages(&mut self, closed: &[Page], open: &Page) -> rusqlite::Result<()> {
        closed.iter().chain([open]).try_for_each(|page| self.put_page(page))
    }

    fn write(&mut self, rows: &[(&str, RowWrite<'_>)]) -> rusqlite::Result<()> {
        for (key, write) in rows {
            match write {
                RowWrite::Insert(new, now) => put(&mut self.insert, self.set, key, new, now)?,
                RowWrite::Update(new, now) => put(&mut self.update, self.set, key, new, now)?,
                RowWrite::Refresh(now) => {
                    let content = now.held.content.as_ref().map(ContentId::as_bytes);
                    self.refresh.execute(params![self.set, key, now.witness, content])?;
                }
                RowWrite::Delete => drop(self.delete.execute(params![self.set, key])?),
            }
        }
        Ok(())
    }

    fn write_tombstones(
        &mut self,
        left: &[(&str, Position)],
        returned: &[&str],
    ) -> rusqlite::Result<()> {
        // Most sets do not have tombstones.
        if !returned.is_empty() && self.has_tombstones.exists([self.set])? {
            for key in returned {
                self.remove_tombstone.execute(params![self.set, key])?;
            }
        }
        for (key, position) in left {
            self.add_tombstone.execute(params![self.set, key, position.0 as i64])?;
        }
        Ok(())
    }

    fn remember(&mut self, names: &[Name<'_>]) -> rusqlite::Result<()> {
        for name in names {
            self.remember.execute(params![
                self.set,
                name.name,
                name.position.0 as i64,
                name.time.as_micros()
            ])?;
        }
        Ok(())
    }

    fn middle(
        &mut self,
        shard: &LiveShard,
        end: Option<&str>,
    ) -> rusqlite::Result<Option<SplitPoint>> {
        let mut rows = match end {
            None => self.rows_from.query(params![self.set, shard.start])?,
            Some(end) => self.rows_between.query(params![self.set, shard.start, end])?,
        };
        let (mut resources, mut bytes) = (0, 0);
        while let Some(row) = rows.next()? {
            let key = row.get_ref(4)?.as_str()?;
            if SplitPoint::is_due(shard, resources, bytes) {
                return Ok(Some(SplitPoint { key: key.to_owned(), resources, bytes }));
            }
            resources += 1;
            bytes += row_bytes(row, key, 0)?;
        }
        Ok(None)
    }

    fn retire(&mut self, shard: &LiveShard, end: Option<&str>) -> rusqlite::Result<()> {
        self.put_shard(shard, end, true)
    }
}

/// Runs a statement that adds or replaces the row of a resource.
fn put(
    statement: &mut CachedStatement<'_>,
    set: i64,
    key: &str,
    new: &Encoded<'_>,
    now: &Now<'_>,
) -> rusqlite::Result<()> {
    let texts = [new.description.as_deref(), new.deprecated.as_deref()];
    statement.execute(params![
        set,
        key,
        now.position.0 as i64,
        new.state.modified.as_micros(),
        new.state.length.map(|length| length as i64),
        new.state.media_type,
        new.state.encoding,
        new.digests,
        new.links,
        now.witness,
        now.held.content.as_ref().map(ContentId::as_bytes),
        row_sum::of_row(key, &[], Some(new), RowKind::Resource, &texts),
        new.description,
        new.deprecated,
    ])?;
    Ok(())
}

/// Estimated size of a stored resource's entry in a document, in bytes; `first` is the index of the
/// first column.
fn row_bytes(row: &Row<'_>, key: &str, first: usize) -> rusqlite::Result<u64> {
    let length = |column: usize| {
        Ok::<_, rusqlite::Error>(match row.get_ref(first + column)? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
            _ => 0,
        })
    };
    Ok(entry_bytes(key, length(0)?, length(1)?, length(2)?, length(3)?))
}
