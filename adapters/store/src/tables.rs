//! The statements that change a set's rows: prepared once, used inside the writer's transaction.

use crate::apply::{Compared, Deleted, Encoded, Entry, Tables};
use crate::rows::{content, kind_number, read_resource, resource_columns};
use crate::set_state::SetState;
use crate::shards::{LiveShard, SplitPoint, entry_bytes};
use crate::sum::{self, RowKind};
use crate::version_tables::VersionStatements;
use abreast_core::{ContentId, Page, Position, Resource, SetId, State};
use abreast_webtypes::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Row, params};

/// The statements, for one set at a time.
pub(crate) struct SqliteTables<'c> {
    pub(crate) set: i64,
    pub(crate) versions: VersionStatements<'c>,
    insert: CachedStatement<'c>,
    compare: CachedStatement<'c>,
    update: CachedStatement<'c>,
    set_witness: CachedStatement<'c>,
    set_content: CachedStatement<'c>,
    delete: CachedStatement<'c>,
    state: CachedStatement<'c>,
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
            versions: VersionStatements::new(connection),
            insert: connection.prepare_cached(
                "INSERT INTO resources (set_id, key, position, modified, length, media_type, encoding, digests, links, \
                 witness, content, sum, description, deprecated) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING",
            )?,
            compare: connection.prepare_cached(
                "SELECT media_type, encoding, digests, links, modified, length, witness, content, position, description, \
                 deprecated FROM resources WHERE set_id = ?1 AND key = ?2",
            )?,
            update: connection.prepare_cached(
                "UPDATE resources SET position = ?3, modified = ?4, length = ?5, media_type = ?6, encoding = ?7, \
                 digests = ?8, links = ?9, witness = ?10, content = ?11, sum = ?12, description = ?13, deprecated = ?14 \
                 WHERE set_id = ?1 AND key = ?2",
            )?,
            set_witness: connection
                .prepare_cached("UPDATE resources SET witness = ?3 WHERE set_id = ?1 AND key = ?2")?,
            set_content: connection
                .prepare_cached("UPDATE resources SET content = ?3 WHERE set_id = ?1 AND key = ?2")?,
            delete: connection.prepare_cached(
                "DELETE FROM resources WHERE set_id = ?1 AND key = ?2 RETURNING media_type, encoding, digests, links, \
                 content, description",
            )?,
            state: connection.prepare_cached(concat!(
                "SELECT ",
                resource_columns!(),
                " FROM resources WHERE set_id = ?1 AND key = ?2"
            ))?,
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
                 ON CONFLICT DO UPDATE SET position = excluded.position, time = excluded.time WHERE time < ?5",
            )?,
        })
    }

    /// The same statements for another set.
    pub(crate) fn of(&mut self, set: SetId) -> &mut Self {
        self.set = set.0;
        self
    }

    /// Stores what the batch did to the shards.
    pub(crate) fn store_shards(&mut self, set_state: &mut SetState) -> rusqlite::Result<()> {
        for (place, shard) in set_state.shards.list().iter().enumerate().filter(|(_, shard)| shard.dirty) {
            self.put_shard(shard, set_state.shards.end_of(place), false)?;
        }
        set_state.shards.stored();
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

    fn put_shard(&mut self, shard: &LiveShard, end: Option<&str>, retired: bool) -> rusqlite::Result<()> {
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
    fn insert(&mut self, key: &str, new: &Encoded, witness: &[u8], at: Position) -> rusqlite::Result<bool> {
        let added = self.insert.execute(params![
            self.set,
            key,
            at.0 as i64,
            new.state.modified.as_micros(),
            new.state.length.map(|length| length as i64),
            new.state.media_type,
            new.state.encoding,
            new.digests,
            new.links,
            witness,
            new.content(),
            sum::of_row(
                key,
                &[],
                Some(new),
                RowKind::Resource,
                &[new.description.as_deref(), new.deprecated.as_deref()]
            ),
            new.description,
            new.deprecated,
        ])?;
        Ok(added == 1)
    }

    fn compare(&mut self, key: &str, new: &Encoded, witness: &[u8]) -> rusqlite::Result<Compared> {
        let is_text = |value: ValueRef<'_>, text: Option<&str>| match (value, text) {
            (ValueRef::Null, None) => true,
            (ValueRef::Text(value), Some(text)) => value == text.as_bytes(),
            _ => false,
        };
        self.compare.query_row(params![self.set, key], |row| {
            let same_state = row.get::<_, i64>(4)? == new.state.modified.as_micros()
                && row.get::<_, Option<i64>>(5)? == new.state.length.map(|length| length as i64)
                && is_text(row.get_ref(0)?, new.state.media_type.as_deref())
                && is_text(row.get_ref(1)?, new.state.encoding.as_deref())
                && row.get_ref(2)? == ValueRef::Blob(&new.digests)
                && is_text(row.get_ref(3)?, new.links.as_deref())
                && is_text(row.get_ref(9)?, new.description.as_deref());
            let same_deprecation = is_text(row.get_ref(10)?, new.deprecated.as_deref());
            let same_witness = row.get_ref(6)? == ValueRef::Blob(witness);
            let position = Position(row.get::<_, i64>(8)? as u64);
            let (content, bytes) = (content(row, 7)?, row_bytes(row, key)?);
            Ok(Compared { same_state, same_witness, same_deprecation, content, position, bytes })
        })
    }

    fn update(&mut self, key: &str, new: &Encoded, witness: &[u8], at: Position) -> rusqlite::Result<()> {
        self.update.execute(params![
            self.set,
            key,
            at.0 as i64,
            new.state.modified.as_micros(),
            new.state.length.map(|length| length as i64),
            new.state.media_type,
            new.state.encoding,
            new.digests,
            new.links,
            witness,
            new.content(),
            sum::of_row(
                key,
                &[],
                Some(new),
                RowKind::Resource,
                &[new.description.as_deref(), new.deprecated.as_deref()]
            ),
            new.description,
            new.deprecated,
        ])?;
        Ok(())
    }

    fn set_witness(&mut self, key: &str, witness: &[u8]) -> rusqlite::Result<()> {
        self.set_witness.execute(params![self.set, key, witness])?;
        Ok(())
    }

    fn set_content(&mut self, key: &str, id: ContentId) -> rusqlite::Result<()> {
        self.set_content.execute(params![self.set, key, id.as_bytes()])?;
        Ok(())
    }

    fn delete(&mut self, key: &str) -> rusqlite::Result<Option<Deleted>> {
        let mut rows = self.delete.query(params![self.set, key])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(Deleted { bytes: row_bytes(row, key)?, content: content(row, 4)?, description: row.get(5)? }))
    }

    fn state(&mut self, key: &str) -> rusqlite::Result<Option<(State, Vec<u8>)>> {
        let mut rows = self.state.query(params![self.set, key])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut resource = Resource::default();
        read_resource(row, &mut resource)?;
        Ok(Some((resource.state, resource.witness)))
    }

    fn record(&mut self, entry: &Entry) -> rusqlite::Result<()> {
        let Entry { position, time, kind, key, new, note, .. } = *entry;
        let (state, kind, description) = (new.map(|new| new.state), kind_number(kind), entry.description());
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
            sum::of_row(key, &[kind, time.as_micros(), position.0 as i64], new, RowKind::Change, &[description, note]),
            description,
            note,
        ])?;
        Ok(())
    }

    fn add_tombstone(&mut self, key: &str, at: Position) -> rusqlite::Result<()> {
        self.add_tombstone.execute(params![self.set, key, at.0 as i64]).map(drop)
    }

    fn remove_tombstone(&mut self, key: &str) -> rusqlite::Result<()> {
        self.remove_tombstone.execute(params![self.set, key]).map(drop)
    }

    fn close_page(&mut self, closed: &Page, open: &Page) -> rusqlite::Result<()> {
        self.put_page(closed)?;
        self.put_page(open)
    }

    fn middle(&mut self, shard: &LiveShard, end: Option<&str>) -> rusqlite::Result<Option<SplitPoint>> {
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
            bytes += row_bytes(row, key)?;
        }
        Ok(None)
    }

    fn retire(&mut self, shard: &LiveShard, end: Option<&str>) -> rusqlite::Result<()> {
        self.put_shard(shard, end, true)
    }

    fn remember(&mut self, name: &str, at: Position, now: Timestamp, expired: Timestamp) -> rusqlite::Result<bool> {
        let changed =
            self.remember.execute(params![self.set, name, at.0 as i64, now.as_micros(), expired.as_micros()])?;
        Ok(changed == 1)
    }
}

/// About the size of a stored resource in a document; the row starts with the columns this needs.
fn row_bytes(row: &Row<'_>, key: &str) -> rusqlite::Result<u64> {
    let length = |column| {
        Ok::<_, rusqlite::Error>(match row.get_ref(column)? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
            _ => 0,
        })
    };
    Ok(entry_bytes(key, length(0)?, length(1)?, length(2)?, length(3)?))
}
