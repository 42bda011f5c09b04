//! Loading the cached data of sets when a store is opened, without a scan of any table.

use crate::log::set_state::{OpenPage, SetState};
use crate::log::shards::{LiveShard, LiveShards};
use crate::log::version_state::{Collector, References, Versions};
use abreast_core::{PageRule, Position, SetId, ShardId, ShardRule};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashMap;
use std::time::Duration;

/// Reads the cached data of every set.
pub(crate) fn load_set_states(
    connection: &Connection,
    shard_rule: ShardRule,
) -> rusqlite::Result<HashMap<SetId, SetState>> {
    let mut sets = connection.prepare_cached(
        "SELECT id, created, importing, page_changes, page_age, versions, kept_bytes, counted_as, counted, aged, sized, begun, anew, begins, kept_since \
         FROM sets",
    )?;
    let mut rows = sets.query([])?;
    let mut set_states = HashMap::new();
    while let Some(row) = rows.next()? {
        let set: i64 = row.get(0)?;
        // Change Lists of a restarted log start at the restart.
        let created =
            Timestamp::from_micros(row.get::<_, Option<i64>>(12)?.map_or_else(|| row.get(1), Ok)?);
        let rule = PageRule {
            changes: row.get(3)?,
            age: Duration::from_micros(row.get::<_, i64>(4)? as u64),
        };
        let page = open_page(connection, set)?;
        let (position, time) = last_change(connection, set)?.unwrap_or((Position(0), created));
        let (position, time) = (position.max(page.after), time.max(created));
        let versions = Versions {
            keep: row.get(5)?,
            kept_bytes: row.get::<_, i64>(6)? as u64,
            begun: row.get::<_, Option<i64>>(11)?.map(|begun| Position(begun as u64)),
            since: row.get::<_, Option<i64>>(14)?.map(|since| Position(since as u64)),
            collector: Collector {
                counted_as: row.get(7)?,
                counted: Position(row.get::<_, i64>(8)? as u64),
                aged: Position(row.get::<_, i64>(9)? as u64),
                sized: Position(row.get::<_, i64>(10)? as u64),
            },
        };
        let shards = load_shards(connection, set, shard_rule)?;
        let set_state = SetState {
            created,
            importing: row.get(2)?,
            in_log: row.get(13)?,
            rule,
            position,
            time,
            page,
            resources: shards.resources(),
            shards,
            versions,
            stored_versions: versions,
            references: References::new(),
        };
        set_states.insert(SetId(set), set_state);
    }
    Ok(set_states)
}

fn last_change(
    connection: &Connection,
    set: i64,
) -> rusqlite::Result<Option<(Position, Timestamp)>> {
    connection
        .prepare_cached(
            "SELECT position, time FROM changes WHERE set_id = ?1 ORDER BY position DESC LIMIT 1",
        )?
        .query_row([set], |row| {
            Ok((Position(row.get::<_, i64>(0)? as u64), Timestamp::from_micros(row.get(1)?)))
        })
        .optional()
}

fn open_page(connection: &Connection, set: i64) -> rusqlite::Result<OpenPage> {
    let mut page = connection
        .prepare_cached("SELECT number, after, from_time FROM pages WHERE set_id = ?1 ORDER BY number DESC LIMIT 1")?
        .query_row([set], |row| {
            Ok(OpenPage {
                number: row.get::<_, i64>(0)? as u64,
                after: Position(row.get::<_, i64>(1)? as u64),
                from: Timestamp::from_micros(row.get(2)?),
                first: None,
            })
        })?;
    page.first = connection
        .prepare_cached("SELECT time FROM changes WHERE set_id = ?1 AND position = ?2")?
        .query_row([set, page.after.next().0 as i64], |row| row.get(0))
        .optional()?
        .map(Timestamp::from_micros);
    Ok(page)
}

fn load_shards(connection: &Connection, set: i64, rule: ShardRule) -> rusqlite::Result<LiveShards> {
    let mut statement = connection.prepare_cached(
        "SELECT id, start_key, resources, bytes, version, time FROM shards \
         WHERE set_id = ?1 AND retired = 0 ORDER BY start_key",
    )?;
    let rows = statement.query_map([set], |row| {
        Ok(LiveShard {
            id: ShardId(row.get::<_, i64>(0)? as u64),
            start: row.get(1)?,
            resources: row.get::<_, i64>(2)? as u64,
            bytes: row.get::<_, i64>(3)? as u64,
            version: Position(row.get::<_, i64>(4)? as u64),
            time: Timestamp::from_micros(row.get(5)?),
            dirty: false,
        })
    })?;
    let list = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let last = list.last().ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let highest = connection
        .prepare_cached(
            "SELECT key FROM resources WHERE set_id = ?1 AND key >= ?2 ORDER BY key DESC LIMIT 1",
        )?
        .query_row((set, &last.start), |row| row.get(0))
        .optional()?;
    let next_id: i64 = connection
        .prepare_cached("SELECT max(id) + 1 FROM shards WHERE set_id = ?1")?
        .query_row([set], |row| row.get(0))?;
    Ok(LiveShards::new(list, next_id as u64, highest, rule))
}
