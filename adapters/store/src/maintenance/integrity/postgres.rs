//! The rows of a log in PostgreSQL, read in parts.

use crate::log::postgres::removal::{REMOVALS, all_removals, removed_set};
use crate::log::postgres::rows::{
    change_columns, key_hash, read_change, read_resource, read_version, resource_columns,
    version_columns,
};
use crate::log::postgres::tables::row_bytes;
use crate::maintenance::integrity::findings::Findings;
use crate::maintenance::integrity::set::{
    ChangeRow, ContentRow, HeadRow, LogRows, PageRow, ResourceRow, SET_TABLES, SetFacts, SetRow,
    ShardRow, VersionRow, check_sets,
};
use crate::maintenance::integrity::shared::SharedStore;
use crate::postgres::client::repeat;
use crate::postgres::database::PostgresDatabase;
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::{Param, params};
use abreast_core::{ContentId, ErrorKind, LogError, Meter};
use abreast_webtypes::Timestamp;
use std::collections::HashSet;
use tokio_postgres::Row;

/// Rows that a statement reads.
const PART: i64 = 500;
/// Most rows without a set that are counted in each table.
const STRANGERS_MAX: i64 = 10_000;
const DOING: &str = "cannot check the rows of the database";

// A subquery with a single row is a look-up in an index. The planner could read all rows of a table for
// EXISTS.
const SETS: &str = "SELECT id, slug, coalesce(restarted, created), restarted IS NOT NULL, importing AND NOT in_log, \
     kept_bytes, position, time, resources, page, page_after FROM abreast.sets ORDER BY id";
const PAGES: &str = "SELECT number, after, last, from_time, until_time, \
     (SELECT c.time FROM abreast.changes c WHERE c.set_id = pages.set_id AND c.position = pages.last) \
     FROM abreast.pages WHERE set_id = $1 AND number > $3 ORDER BY number LIMIT $2";
const SHARDS: &str = "SELECT id, start_key, end_key, resources, bytes, version, time, retired, \
     (SELECT c.time FROM abreast.changes c WHERE c.set_id = shards.set_id AND c.position = shards.version) \
     FROM abreast.shards WHERE set_id = $1 AND id > $3 ORDER BY id LIMIT $2";
const CHANGES: &str = concat!(
    "SELECT ",
    change_columns!(),
    ", CASE WHEN kind IN (5, 6) THEN (SELECT true FROM abreast.resources r WHERE r.set_id = changes.set_id \
     AND r.key_hash = substr(sha256(convert_to(changes.key, 'UTF8')), 1, 16)) IS NULL \
     AND (SELECT t.position >= changes.position FROM abreast.tombstones t WHERE t.set_id = changes.set_id \
     AND t.key_hash = substr(sha256(convert_to(changes.key, 'UTF8')), 1, 16)) IS NOT TRUE ELSE false END \
     FROM abreast.changes WHERE set_id = $1 AND position > $3 ORDER BY position LIMIT $2"
);
const RESOURCES: &str = concat!(
    "SELECT ",
    resource_columns!(),
    ", key_hash, position > 0 AND (SELECT c.key = resources.key AND c.kind < 5 \
     AND c.modified IS NOT DISTINCT FROM resources.modified AND c.length IS NOT DISTINCT FROM resources.length \
     AND c.media_type IS NOT DISTINCT FROM resources.media_type AND c.encoding IS NOT DISTINCT FROM resources.encoding \
     AND c.digests IS NOT DISTINCT FROM resources.digests AND c.links IS NOT DISTINCT FROM resources.links \
     AND c.description IS NOT DISTINCT FROM resources.description \
     FROM abreast.changes c WHERE c.set_id = resources.set_id AND c.position = resources.position) IS NOT TRUE \
     FROM abreast.resources WHERE set_id = $1 AND key_hash > $3 ORDER BY key_hash LIMIT $2"
);
const TOMBSTONES: &str = "SELECT key_hash, \
     (SELECT c.key FROM abreast.changes c WHERE c.set_id = tombstones.set_id AND c.position = tombstones.position \
     AND c.kind IN (5, 6)), \
     (SELECT r.key FROM abreast.resources r WHERE r.set_id = tombstones.set_id AND r.key_hash = tombstones.key_hash) \
     FROM abreast.tombstones WHERE set_id = $1 AND key_hash > $3 ORDER BY key_hash LIMIT $2";
const VERSIONS: &str = concat!(
    "SELECT ",
    version_columns!(),
    ", key_hash, coalesce((SELECT r.key FROM abreast.resources r WHERE r.set_id = versions.set_id \
     AND r.key_hash = versions.key_hash), (SELECT c.key FROM abreast.tombstones t JOIN abreast.changes c \
     ON c.set_id = t.set_id AND c.position = t.position WHERE t.set_id = versions.set_id \
     AND t.key_hash = versions.key_hash)) \
     FROM abreast.versions WHERE set_id = $1 AND (key_hash, time) > ($3, $4) ORDER BY key_hash, time LIMIT $2"
);
const CONTENTS: &str = "SELECT id, needed, length FROM abreast.contents WHERE set_id = $1 AND id > $3 \
     ORDER BY id LIMIT $2";

/// The rows of a log, read in one transaction.
struct PostgresRows<'c> {
    statements: Statements<'c>,
    meter: &'c Meter,
    is_stopped: &'c dyn Fn() -> bool,
}

/// The first place in the order of a table.
fn first_number() -> Vec<Param> {
    params![i64::MIN => INT8].into()
}

fn first_hash() -> Vec<Param> {
    params![Vec::<u8>::new() => BYTEA].into()
}

impl PostgresRows<'_> {
    /// Visits the rows of a set that a statement reads after a place; `place_of` returns the place of a row.
    fn parts(
        &mut self,
        sql: &str,
        set: i64,
        mut place: Vec<Param>,
        place_of: fn(&Row) -> Result<Vec<Param>, Failure>,
        visit: &mut dyn FnMut(&Row) -> Result<(), Failure>,
    ) -> Result<(), LogError> {
        loop {
            if (self.is_stopped)() {
                return Err(LogError::new(ErrorKind::Busy, "the check was stopped"));
            }
            let mut values: Vec<Param> = params![set => INT8, PART => INT8].into();
            values.append(&mut place);
            let mut part = || -> Result<bool, Failure> {
                let rows = self.statements.query(sql, &values)?;
                rows.iter().try_for_each(&mut *visit)?;
                self.meter.add(rows.len() as u64, 0);
                let Some(last) = rows.last().filter(|_| rows.len() as i64 == PART) else {
                    return Ok(false);
                };
                place = place_of(last)?;
                Ok(true)
            };
            if !part().map_err(failed)? {
                return Ok(());
            }
        }
    }
}

fn failed(failure: Failure) -> LogError {
    failure.into_error(DOING)
}

fn number_at(row: &Row, column: usize) -> Result<Vec<Param>, Failure> {
    Ok(params![row.try_get::<_, i64>(column)? => INT8].into())
}

fn bytes_at(row: &Row, column: usize) -> Result<Vec<Param>, Failure> {
    Ok(params![row.try_get::<_, Vec<u8>>(column)? => BYTEA].into())
}

/// The reason why a row cannot be read, if it cannot.
fn fault<T>(read: Result<T, Failure>) -> Option<String> {
    read.err().map(|failure| failure.to_string())
}

impl LogRows for PostgresRows<'_> {
    type Error = LogError;

    fn sets(&mut self) -> Result<Vec<SetRow>, LogError> {
        let row = |row: &Row| -> Result<SetRow, Failure> {
            Ok(SetRow {
                id: row.try_get(0)?,
                slug: row.try_get(1)?,
                begins: Timestamp::from_micros(row.try_get(2)?),
                restarted: row.try_get(3)?,
                importing: row.try_get(4)?,
                kept_bytes: row.try_get(5)?,
                head: Some(HeadRow {
                    position: row.try_get(6)?,
                    time: row.try_get(7)?,
                    resources: row.try_get(8)?,
                    page: row.try_get(9)?,
                    page_after: row.try_get(10)?,
                }),
            })
        };
        let rows = self.statements.query(SETS, &[]).map_err(failed)?;
        rows.iter().map(row).collect::<Result<_, _>>().map_err(failed)
    }

    fn pages(&mut self, set: i64, visit: &mut dyn FnMut(PageRow)) -> Result<(), LogError> {
        self.parts(PAGES, set, first_number(), |row| number_at(row, 0), &mut |row| {
            visit(PageRow {
                number: row.try_get(0)?,
                after: row.try_get(1)?,
                last: row.try_get(2)?,
                from: row.try_get(3)?,
                until: row.try_get(4)?,
                time_of_last: row.try_get(5)?,
            });
            Ok(())
        })
    }

    fn shards(&mut self, set: i64) -> Result<Vec<ShardRow>, LogError> {
        let mut shards = Vec::new();
        self.parts(SHARDS, set, first_number(), |row| number_at(row, 0), &mut |row| {
            shards.push(ShardRow {
                id: row.try_get(0)?,
                start: row.try_get(1)?,
                end: row.try_get(2)?,
                resources: row.try_get(3)?,
                bytes: row.try_get(4)?,
                version: row.try_get(5)?,
                time: row.try_get(6)?,
                retired: row.try_get(7)?,
                time_of_version: row.try_get(8)?,
            });
            Ok(())
        })?;
        Ok(shards)
    }

    fn changes(&mut self, set: i64, visit: &mut dyn FnMut(ChangeRow<'_>)) -> Result<(), LogError> {
        self.parts(CHANGES, set, first_number(), |row| number_at(row, 10), &mut |row| {
            visit(ChangeRow {
                position: row.try_get(10)?,
                time: Timestamp::from_micros(row.try_get(9)?),
                key: row.try_get(7)?,
                fault: fault(read_change(row)),
                lacks_tombstone: row.try_get(13)?,
            });
            Ok(())
        })
    }

    fn resources(
        &mut self,
        set: i64,
        visit: &mut dyn FnMut(ResourceRow<'_>),
    ) -> Result<(), LogError> {
        self.parts(RESOURCES, set, first_hash(), |row| bytes_at(row, 12), &mut |row| {
            let key: &str = row.try_get(7)?;
            let is_found = key_hash(key) == row.try_get::<_, &[u8]>(12)?;
            let other_hash = || "its `key_hash` is that of another key".to_owned();
            visit(ResourceRow {
                key,
                bytes: row_bytes(row, key)?,
                content: row.try_get(6)?,
                differs: row.try_get(13)?,
                fault: fault(read_resource(row)).or_else(|| (!is_found).then(other_hash)),
            });
            Ok(())
        })
    }

    fn wrong_tombstones(&mut self, set: i64, visit: &mut dyn FnMut(&str)) -> Result<(), LogError> {
        self.parts(TOMBSTONES, set, first_hash(), |row| bytes_at(row, 0), &mut |row| {
            let hash: &[u8] = row.try_get(0)?;
            let (removed, present): (Option<&str>, Option<&str>) =
                (row.try_get(1)?, row.try_get(2)?);
            match (removed, present) {
                (Some(key), None) if key_hash(key) == hash => {}
                (_, Some(key)) | (Some(key), None) => visit(key),
                (None, None) => visit(&format!("key_hash {hash:02x?}")),
            }
            Ok(())
        })
    }

    fn versions(
        &mut self,
        set: &SetRow,
        visit: &mut dyn FnMut(VersionRow<'_>),
    ) -> Result<(), LogError> {
        let mut first = first_hash();
        first.extend(first_number());
        let place_of = |row: &Row| {
            let mut place = bytes_at(row, 9)?;
            place.extend(number_at(row, 7)?);
            Ok(place)
        };
        self.parts(VERSIONS, set.id, first, place_of, &mut |row| {
            let key: Option<&str> = row.try_get(10)?;
            let unknown = || "no resource has its `key_hash`".to_owned();
            visit(VersionRow {
                key: key.unwrap_or_default(),
                content: row.try_get(6)?,
                fault: fault(read_version(row, set.begins)).or_else(|| key.is_none().then(unknown)),
            });
            Ok(())
        })
    }

    fn contents(
        &mut self,
        set: i64,
        visit: &mut dyn FnMut(ContentRow<'_>),
    ) -> Result<(), LogError> {
        self.parts(CONTENTS, set, first_hash(), |row| bytes_at(row, 0), &mut |row| {
            visit(ContentRow {
                id: row.try_get(0)?,
                needed: row.try_get(1)?,
                length: row.try_get(2)?,
            });
            Ok(())
        })
    }

    fn strangers(&mut self) -> Result<Vec<(&'static str, u64)>, LogError> {
        let mut sets: HashSet<i64> = self.sets()?.iter().map(|set| set.id).collect();
        sets.extend(self.removed_sets().map_err(failed)?);
        let mut found = Vec::new();
        for table in SET_TABLES {
            let number = self.strangers_in(table, &sets).map_err(failed)?;
            if number > 0 {
                found.push((table, number as u64));
            }
        }
        Ok(found)
    }
}

impl PostgresRows<'_> {
    /// Removed sets whose rows are not all deleted.
    fn removed_sets(&mut self) -> Result<Vec<i64>, Failure> {
        self.statements.query(REMOVALS, &all_removals())?.iter().map(removed_set).collect()
    }

    /// The number of rows of a table that belong to none of the sets, at most [`STRANGERS_MAX`] of each
    /// unknown set.
    fn strangers_in(&mut self, table: &str, sets: &HashSet<i64>) -> Result<i64, Failure> {
        // Finds each number of a set in the index, without reading all rows.
        let next = format!("SELECT min(set_id) FROM abreast.{table} WHERE set_id > $1");
        let rows = format!(
            "SELECT count(*) FROM (SELECT FROM abreast.{table} WHERE set_id = $1 LIMIT $2) AS found"
        );
        let (mut after, mut number) = (i64::MIN, 0);
        while let Some(row) = self.statements.query_first(&next, &params![after => INT8])? {
            let Some(set) = row.try_get(0)? else { break };
            after = set;
            if !sets.contains(&set) {
                let found = self
                    .statements
                    .query_first(&rows, &params![set => INT8, STRANGERS_MAX => INT8])?;
                number += found.map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
            }
        }
        Ok(number)
    }
}

impl SharedStore for PostgresDatabase {
    fn check_log(
        &self,
        place: &str,
        findings: &mut Findings,
        meter: &Meter,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<SetFacts>, LogError> {
        let statements = repeat(DOING, || Statements::snapshot(&self.client))?;
        let mut rows = PostgresRows { statements, meter, is_stopped };
        let mut facts = Vec::new();
        check_sets(&mut rows, place, findings, &mut facts)?;
        // All rows were read, whatever the end of the transaction answers.
        drop(rows.statements.commit());
        Ok(facts)
    }

    fn needed_contents(
        &self,
        after: &[u8],
        limit: usize,
    ) -> Result<Vec<(ContentId, u64)>, LogError> {
        self.client.needed_contents(after, limit)
    }

    fn is_needed(&self, id: &ContentId) -> Result<bool, LogError> {
        self.client.needs_content(id)
    }
}
