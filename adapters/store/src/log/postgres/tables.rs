//! The statements that change a set's rows.

use crate::log::postgres::newest_versions::NewestVersions;
use crate::log::postgres::rows::{bytes_of, content, key_hash, read_resource, resource_columns};
use crate::log::set_rows::{Encoded, LogRow, RowWrite, StoredRow, StoredRows, kind_number};
use crate::log::set_state::SetState;
use crate::log::shards::{LiveShard, SplitPoint, entry_bytes};
use crate::log::tables::Tables;
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::{Column, params};
use abreast_core::batch::{Name, Now};
use abreast_core::{Page, Position, Resource, SetId, State};
use abreast_webtypes::Timestamp;
use std::collections::HashMap;
use tokio_postgres::Row;

/// Selects the rows of a set in a range of keys: from `$2` on if `$3`, otherwise after `$2`; before
/// `$4`, if it is not NULL. The index has only the first characters of keys.
macro_rules! key_range {
    () => {
        "set_id = $1 AND left(key, 500) >= left($2, 500) AND (key > $2 OR ($3 AND key = $2)) \
         AND ($4 IS NULL OR (left(key, 500) <= left($4, 500) AND key < $4))"
    };
}
pub(crate) use key_range;

/// Rows of a shard that are read at once.
const MIDDLE_PART: i64 = 500;

/// Fewest new rows for which the additional round trips of `COPY` are worth it.
const COPY_MIN: usize = 200;

/// An insertion of rows, as a statement with the set and an array for each column, and as `COPY`.
struct Insert {
    sql: &'static str,
    copy: &'static str,
}

const CHANGES: Insert = Insert {
    sql: "INSERT INTO abreast.changes (set_id, position, time, kind, key, modified, length, media_type, encoding, \
          digests, links, content, description, note) \
          SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    copy: "COPY abreast.changes (set_id, position, time, kind, key, modified, length, media_type, encoding, \
           digests, links, content, description, note) FROM STDIN (FORMAT binary)",
};

const RESOURCES: Insert = Insert {
    sql: "INSERT INTO abreast.resources (set_id, key_hash, key, position, modified, length, media_type, encoding, \
          digests, links, witness, content, description, deprecated) \
          SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
          ON CONFLICT (set_id, key_hash) DO UPDATE SET position = excluded.position, modified = excluded.modified, \
          length = excluded.length, media_type = excluded.media_type, encoding = excluded.encoding, \
          digests = excluded.digests, links = excluded.links, witness = excluded.witness, content = excluded.content, \
          description = excluded.description, deprecated = excluded.deprecated",
    copy: "COPY abreast.resources (set_id, key_hash, key, position, modified, length, media_type, encoding, \
           digests, links, witness, content, description, deprecated) FROM STDIN (FORMAT binary)",
};

/// The statements about one set, in one transaction.
pub(crate) struct PostgresTables<'c> {
    pub(crate) statements: Statements<'c>,
    pub(crate) set: i64,
    /// Number of this transaction in the set.
    pub(crate) revision: i64,
    pub(crate) newest: NewestVersions,
}

impl<'c> PostgresTables<'c> {
    pub(crate) fn new(statements: Statements<'c>, set: SetId, revision: i64) -> Self {
        Self { statements, set: set.0, revision, newest: NewestVersions::default() }
    }
}

impl PostgresTables<'_> {
    /// Stores the shards that the batch changed.
    pub(crate) fn store_shards(&mut self, set_state: &mut SetState) -> Result<(), Failure> {
        let shards = &set_state.shards;
        let dirty = shards.list().iter().enumerate().filter(|(_, shard)| shard.dirty);
        let rows: Vec<_> =
            dirty.map(|(place, shard)| (shard, shards.end_of(place), false)).collect();
        if !rows.is_empty() {
            self.put_shards(&rows)?;
        }
        set_state.shards.stored();
        Ok(())
    }

    fn put_shards(&mut self, rows: &[(&LiveShard, Option<&str>, bool)]) -> Result<(), Failure> {
        let numbers = |of: fn(&LiveShard) -> i64| -> Vec<i64> {
            rows.iter().map(|(shard, ..)| of(shard)).collect()
        };
        let starts: Vec<String> = rows.iter().map(|(shard, ..)| shard.start.clone()).collect();
        let ends: Vec<Option<String>> =
            rows.iter().map(|(_, end, _)| end.map(str::to_owned)).collect();
        let retired: Vec<bool> = rows.iter().map(|(.., retired)| *retired).collect();
        let params = params![
            self.set => INT8,
            self.revision => INT8,
            numbers(|shard| shard.id.0 as i64) => INT8_ARRAY,
            starts => TEXT_ARRAY,
            ends => TEXT_ARRAY,
            numbers(|shard| shard.resources as i64) => INT8_ARRAY,
            numbers(|shard| shard.bytes as i64) => INT8_ARRAY,
            numbers(|shard| shard.version.0 as i64) => INT8_ARRAY,
            numbers(|shard| shard.time.as_micros()) => INT8_ARRAY,
            retired => BOOL_ARRAY,
        ];
        self.statements.write(
            "INSERT INTO abreast.shards (set_id, revision, id, start_key, end_key, resources, bytes, version, time, retired) \
             SELECT $1, $2, * FROM unnest($3, $4, $5, $6, $7, $8, $9, $10) \
             ON CONFLICT (set_id, id) DO UPDATE SET revision = excluded.revision, end_key = excluded.end_key, \
             resources = excluded.resources, bytes = excluded.bytes, version = excluded.version, \
             time = excluded.time, retired = excluded.retired",
            params,
        )
    }

    /// Stores pages. A closed page does not change.
    pub(crate) fn put_pages(&mut self, pages: &[&Page]) -> Result<(), Failure> {
        let numbers =
            |of: fn(&Page) -> i64| -> Vec<i64> { pages.iter().map(|page| of(page)).collect() };
        let options = |of: fn(&Page) -> Option<i64>| -> Vec<Option<i64>> {
            pages.iter().map(|page| of(page)).collect()
        };
        let params = params![
            self.set => INT8,
            numbers(|page| page.number as i64) => INT8_ARRAY,
            numbers(|page| page.after.0 as i64) => INT8_ARRAY,
            options(|page| page.last.map(|last| last.0 as i64)) => INT8_ARRAY,
            numbers(|page| page.from.as_micros()) => INT8_ARRAY,
            options(|page| page.until.map(Timestamp::as_micros)) => INT8_ARRAY,
        ];
        self.statements.write(
            "INSERT INTO abreast.pages (set_id, number, after, last, from_time, until_time) \
             SELECT $1, * FROM unnest($2, $3, $4, $5, $6) \
             ON CONFLICT (set_id, number) DO UPDATE SET last = excluded.last, from_time = excluded.from_time, \
             until_time = excluded.until_time WHERE abreast.pages.last IS NULL",
            params,
        )
    }

    /// Replaces the fingerprints of known resources.
    pub(crate) fn set_witnesses(&mut self, witnesses: &[(String, Vec<u8>)]) -> Result<(), Failure> {
        // The last fingerprint of a key counts, and a statement may change a row only once.
        let last: HashMap<&str, &[u8]> =
            witnesses.iter().map(|(key, witness)| (key.as_str(), witness.as_slice())).collect();
        let (keys, values): (Vec<_>, Vec<_>) =
            last.into_iter().map(|(key, witness)| (key_hash(key), witness.to_vec())).unzip();
        self.statements.write(
            "UPDATE abreast.resources AS old SET witness = new.witness \
             FROM unnest($2, $3) AS new (key_hash, witness) \
             WHERE old.set_id = $1 AND old.key_hash = new.key_hash",
            params![self.set => INT8, keys => BYTEA_ARRAY, values => BYTEA_ARRAY],
        )
    }

    /// Writes new properties; `is_new` if none of the resources has a row.
    fn put(
        &mut self,
        rows: &[(&str, &Encoded<'_>, &Now<'_>)],
        is_new: bool,
    ) -> Result<(), Failure> {
        let new: Vec<_> = rows.iter().map(|(_, new, _)| Some(*new)).collect();
        let mut columns = vec![
            Column::bytes(rows.iter().map(|(key, ..)| key_hash(key))),
            Column::texts(rows.iter().map(|(key, ..)| (*key).to_owned())),
            Column::numbers(rows.iter().map(|(.., now)| now.position.0 as i64)),
        ];
        columns.extend(properties(&new));
        columns.extend([
            Column::bytes(rows.iter().map(|(.., now)| now.witness.to_vec())),
            Column::bytes(rows.iter().map(|(.., now)| bytes_of(now.held.content))),
            Column::texts(rows.iter().map(|(_, new, _)| new.description.clone())),
            Column::texts(rows.iter().map(|(_, new, _)| new.deprecated.clone())),
        ]);
        self.insert(&RESOURCES, columns, rows.len(), is_new)
    }

    /// Inserts rows of the set, many new rows by `COPY`.
    fn insert(
        &mut self,
        insert: &Insert,
        columns: Vec<Column>,
        rows: usize,
        are_new: bool,
    ) -> Result<(), Failure> {
        if are_new && rows >= COPY_MIN {
            return self.statements.copy(insert.copy, self.set, &columns, rows);
        }
        let set = params![self.set => INT8];
        let arrays = columns.into_iter().map(Column::into_array);
        self.statements.write(insert.sql, set.into_iter().chain(arrays).collect::<Vec<_>>())
    }
}

impl Tables for PostgresTables<'_> {
    /// A whole batch, since each part needs round trips.
    const PART: usize = 10_000;

    fn announce(&mut self, keys: &[&str]) {
        self.newest = NewestVersions::of(keys.iter().map(|key| key_hash(key)).collect());
    }

    fn rows<'k>(&mut self, keys: &[&'k str]) -> Result<StoredRows<'k>, Failure> {
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let hashes: Vec<Vec<u8>> = keys.iter().map(|key| key_hash(key)).collect();
        let rows = self.statements.query(
            concat!(
                "SELECT ",
                resource_columns!(),
                " FROM abreast.resources WHERE set_id = $1 AND key_hash = ANY ($2)"
            ),
            &params![self.set => INT8, hashes => BYTEA_ARRAY],
        )?;
        let mut found = HashMap::with_capacity(rows.len());
        let mut positions = Vec::new();
        for row in &rows {
            let Ok(place) = keys.binary_search(&row.try_get::<_, &str>(7)?) else { continue };
            let read = read_resource(row);
            let is_damaged = read.is_err();
            let resource = Box::new(read.unwrap_or_else(|_| unlike_all(row)));
            let bytes = row_bytes(row, keys[place]).unwrap_or(0);
            positions.extend(resource.state.content.map(|_| resource.position.0 as i64));
            found.insert(keys[place], StoredRow { resource, bytes, is_damaged });
        }
        self.newest.positions = positions;
        Ok(found)
    }

    fn names<'k>(&mut self, names: &[&'k str]) -> Result<HashMap<&'k str, Timestamp>, Failure> {
        let asked: HashMap<&str, &'k str> = names.iter().map(|name| (*name, *name)).collect();
        let owned: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let rows = self.statements.query(
            "SELECT key, time FROM abreast.idempotency WHERE set_id = $1 AND key = ANY ($2)",
            &params![self.set => INT8, owned => TEXT_ARRAY],
        )?;
        let mut found = HashMap::with_capacity(rows.len());
        for row in &rows {
            if let Some(name) = asked.get(row.try_get::<_, &str>(0)?) {
                found.insert(*name, Timestamp::from_micros(row.try_get(1)?));
            }
        }
        Ok(found)
    }

    fn record(&mut self, changes: &[LogRow<'_>]) -> Result<(), Failure> {
        let new: Vec<_> = changes.iter().map(|change| change.new).collect();
        let mut columns = vec![
            Column::numbers(changes.iter().map(|change| change.position.0 as i64)),
            Column::numbers(changes.iter().map(|change| change.time.as_micros())),
            Column::numbers(changes.iter().map(|change| kind_number(change.kind))),
            Column::texts(changes.iter().map(|change| change.key.to_owned())),
        ];
        columns.extend(properties(&new));
        columns.extend([
            Column::bytes(new.iter().map(|new| bytes_of(new.and_then(|new| new.content)))),
            Column::texts(changes.iter().map(|change| change.description().map(str::to_owned))),
            Column::texts(changes.iter().map(|change| change.note.clone())),
        ]);
        self.insert(&CHANGES, columns, changes.len(), true)
    }

    fn close_pages(&mut self, closed: &[Page], open: &Page) -> Result<(), Failure> {
        let pages: Vec<&Page> = closed.iter().chain([open]).collect();
        self.put_pages(&pages)
    }

    fn write(&mut self, rows: &[(&str, RowWrite<'_>)]) -> Result<(), Failure> {
        let (mut inserted, mut updated) = (Vec::with_capacity(rows.len()), Vec::new());
        let mut deleted = Vec::new();
        let (mut refreshed, mut witnesses, mut contents) = (Vec::new(), Vec::new(), Vec::new());
        for (key, write) in rows {
            match write {
                RowWrite::Insert(new, now) => inserted.push((*key, *new, now)),
                RowWrite::Update(new, now) => updated.push((*key, *new, now)),
                RowWrite::Refresh(now) => {
                    refreshed.push(key_hash(key));
                    witnesses.push(now.witness.to_vec());
                    contents.push(bytes_of(now.held.content));
                }
                RowWrite::Delete => deleted.push(key_hash(key)),
            }
        }
        if !inserted.is_empty() {
            self.put(&inserted, true)?;
        }
        if !updated.is_empty() {
            self.put(&updated, false)?;
        }
        if !refreshed.is_empty() {
            self.statements.write(
                "UPDATE abreast.resources AS old SET witness = new.witness, content = new.content \
                 FROM unnest($2, $3, $4) AS new (key_hash, witness, content) \
                 WHERE old.set_id = $1 AND old.key_hash = new.key_hash",
                params![
                    self.set => INT8, refreshed => BYTEA_ARRAY, witnesses => BYTEA_ARRAY, contents => BYTEA_ARRAY,
                ],
            )?;
        }
        if !deleted.is_empty() {
            self.statements.write(
                "DELETE FROM abreast.resources WHERE set_id = $1 AND key_hash = ANY ($2)",
                params![self.set => INT8, deleted => BYTEA_ARRAY],
            )?;
        }
        Ok(())
    }

    fn write_tombstones(
        &mut self,
        left: &[(&str, Position)],
        returned: &[&str],
    ) -> Result<(), Failure> {
        if !returned.is_empty() {
            let hashes: Vec<Vec<u8>> = returned.iter().map(|key| key_hash(key)).collect();
            self.statements.write(
                "DELETE FROM abreast.tombstones WHERE set_id = $1 AND key_hash = ANY ($2)",
                params![self.set => INT8, hashes => BYTEA_ARRAY],
            )?;
        }
        if !left.is_empty() {
            let hashes: Vec<Vec<u8>> = left.iter().map(|(key, _)| key_hash(key)).collect();
            let positions: Vec<i64> = left.iter().map(|(_, position)| position.0 as i64).collect();
            self.statements.write(
                "INSERT INTO abreast.tombstones (set_id, key_hash, position) SELECT $1, * FROM unnest($2, $3) \
                 ON CONFLICT (set_id, key_hash) DO UPDATE SET position = excluded.position",
                params![self.set => INT8, hashes => BYTEA_ARRAY, positions => INT8_ARRAY],
            )?;
        }
        Ok(())
    }

    fn remember(&mut self, names: &[Name<'_>]) -> Result<(), Failure> {
        let keys: Vec<String> = names.iter().map(|name| name.name.to_owned()).collect();
        let positions: Vec<i64> = names.iter().map(|name| name.position.0 as i64).collect();
        let times: Vec<i64> = names.iter().map(|name| name.time.as_micros()).collect();
        self.statements.write(
            "INSERT INTO abreast.idempotency (set_id, key, position, time) SELECT $1, * FROM unnest($2, $3, $4) \
             ON CONFLICT (set_id, key) DO UPDATE SET position = excluded.position, time = excluded.time",
            params![self.set => INT8, keys => TEXT_ARRAY, positions => INT8_ARRAY, times => INT8_ARRAY],
        )
    }

    fn middle(
        &mut self,
        shard: &LiveShard,
        end: Option<&str>,
    ) -> Result<Option<SplitPoint>, Failure> {
        let (mut resources, mut bytes) = (0, 0);
        let (mut from, mut is_first) = (shard.start.clone(), true);
        loop {
            let rows = self.statements.query(
                concat!(
                    "SELECT ",
                    resource_columns!(),
                    " FROM abreast.resources WHERE ",
                    key_range!(),
                    " ORDER BY left(key, 500), key LIMIT $5"
                ),
                &params![
                    self.set => INT8, from => TEXT, is_first => BOOL, end.map(str::to_owned) => TEXT,
                    MIDDLE_PART => INT8,
                ],
            )?;
            for row in &rows {
                let key: &str = row.try_get(7)?;
                if SplitPoint::is_due(shard, resources, bytes) {
                    return Ok(Some(SplitPoint { key: key.to_owned(), resources, bytes }));
                }
                resources += 1;
                bytes += row_bytes(row, key)?;
            }
            match rows.last() {
                Some(last) if rows.len() == MIDDLE_PART as usize => {
                    (from, is_first) = (last.try_get(7)?, false);
                }
                _ => return Ok(None),
            }
        }
    }

    fn retire(&mut self, shard: &LiveShard, end: Option<&str>) -> Result<(), Failure> {
        self.put_shards(&[(shard, end, true)])
    }
}

/// The columns of properties, of which both tables have the same; `None` is a removed resource.
fn properties(rows: &[Option<&Encoded<'_>>]) -> [Column; 6] {
    let states = || rows.iter().map(|row| row.map(|new| new.state));
    let length = |state: &State| state.length.map(|length| length as i64);
    [
        Column::numbers(states().map(|state| state.map(|state| state.modified.as_micros()))),
        Column::numbers(states().map(|state| state.and_then(length))),
        Column::texts(states().map(|state| state.and_then(|state| state.media_type.clone()))),
        Column::texts(states().map(|state| state.and_then(|state| state.encoding.clone()))),
        Column::bytes(rows.iter().map(|row| row.map(|new| new.digests.clone()))),
        Column::texts(rows.iter().map(|row| row.and_then(|new| new.links.clone()))),
    ]
}

/// In place of a damaged row: every new change replaces it, since a resource never has this length.
fn unlike_all(row: &Row) -> Resource {
    let content = content(row, 6).ok().flatten();
    let state = State { length: Some(u64::MAX), content, ..State::default() };
    Resource { state, ..Resource::default() }
}

/// Estimated size of a stored resource's entry in a document, in bytes.
pub(crate) fn row_bytes(row: &Row, key: &str) -> Result<u64, Failure> {
    let text = |column: usize| -> Result<usize, Failure> {
        Ok(row.try_get::<_, Option<&str>>(column)?.map_or(0, str::len))
    };
    let digests = row.try_get::<_, &[u8]>(4)?.len();
    Ok(entry_bytes(key, text(2)?, text(3)?, digests, text(5)?))
}
