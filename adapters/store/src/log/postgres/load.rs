//! The cached data of a set, which a transaction checks when it has the lock of the set.

use crate::log::postgres::rows::{position, time};
use crate::log::postgres::tables::PostgresTables;
use crate::log::set_state::{OpenPage, SetState};
use crate::log::shards::{LiveShard, LiveShards};
use crate::log::version_state::{Collector, References, Versions};
use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::params;
use abreast_core::{PageRule, Position, SetId, ShardId, ShardRule};
use abreast_webtypes::Timestamp;
use std::time::Duration;
use tokio_postgres::Row;

/// Columns of a set, as [`Locked::read`] expects them.
macro_rules! set_columns {
    () => {
        "created, restarted, importing, in_log, page_changes, page_age, position, time, resources, page, page_after, \
         page_from, page_first, next_shard, highest, revision, versions, versions_begun, versions_since, kept_bytes, \
         counted_as, counted, aged, sized"
    };
}
pub(crate) use set_columns;

/// A writer's data about a set, and the transaction that wrote them.
pub(crate) struct Cached {
    pub(crate) revision: i64,
    /// The batch of this writer that made the revision. A database that lost it in a failover or a
    /// restore may have the same revision with another content.
    pub(crate) batch: Option<i64>,
    pub(crate) state: SetState,
}

/// A set's row, read with its lock.
pub(crate) struct Locked {
    pub(crate) cached: Cached,
    /// The database's clock.
    pub(crate) now: Timestamp,
    /// The process whose worker records in the set; 0 if none took over yet.
    pub(crate) worker: i64,
}

/// Begins a transaction with the lock of a set, and reads what other writers changed since
/// `cached`. `None` if there is no such set.
pub(crate) fn lock<'c>(
    client: &'c Client,
    set: SetId,
    writer: &str,
    cached: Option<Cached>,
    rule: ShardRule,
) -> Result<Option<(Locked, Statements<'c>)>, Failure> {
    let (mut statements, row) = Statements::begin(
        client,
        concat!(
            "SELECT ",
            set_columns!(),
            ", (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
             (SELECT batch FROM abreast.writers WHERE set_id = $1 AND writer = $2), worker \
             FROM abreast.sets WHERE id = $1 FOR UPDATE"
        ),
        &params![set.0 => INT8, writer.to_owned() => TEXT],
    )?;
    let Some(row) = row else { return Ok(None) };
    let now = time(&row, 24)?;
    let revision: i64 = row.try_get(15)?;
    let (batch, worker): (Option<i64>, i64) = (row.try_get(25)?, row.try_get(26)?);
    let cached = cached.filter(|cached| cached.batch == batch && cached.revision <= revision);
    let state = match cached {
        Some(Cached { revision: known, state, .. }) if known == revision => {
            SetState { rule: page_rule(&row)?, ..state }
        }
        Some(Cached { revision: known, state, .. }) => {
            let mut shards = state.shards;
            refresh_shards(&mut statements, set, known, &mut shards, &row)?;
            read_state(&row, shards)?
        }
        None => read_state(&row, load_shards(&mut statements, set, &row, rule)?)?,
    };
    let cached = Cached { revision, batch, state };
    Ok(Some((Locked { cached, now, worker }, statements)))
}

fn page_rule(row: &Row) -> Result<PageRule, Failure> {
    Ok(PageRule {
        changes: u32::try_from(row.try_get::<_, i64>(4)?).unwrap_or(u32::MAX),
        age: Duration::from_micros(row.try_get::<_, i64>(5)? as u64),
    })
}

/// Reads a set's row.
pub(crate) fn read_state(row: &Row, shards: LiveShards) -> Result<SetState, Failure> {
    let option = |column: usize| -> Result<Option<i64>, Failure> { Ok(row.try_get(column)?) };
    // Change Lists of a restarted log start at the restart.
    let created =
        option(1)?.map_or_else(|| time(row, 0), |time| Ok(Timestamp::from_micros(time)))?;
    let versions = Versions {
        keep: row.try_get(16)?,
        begun: option(17)?.map(|begun| Position(begun as u64)),
        since: option(18)?.map(|since| Position(since as u64)),
        kept_bytes: row.try_get::<_, i64>(19)? as u64,
        collector: Collector {
            counted_as: option(20)?.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
            counted: position(row, 21)?,
            aged: position(row, 22)?,
            sized: position(row, 23)?,
        },
    };
    Ok(SetState {
        created,
        importing: row.try_get(2)?,
        in_log: row.try_get(3)?,
        rule: page_rule(row)?,
        position: position(row, 6)?,
        time: time(row, 7)?,
        page: OpenPage {
            number: row.try_get::<_, i64>(9)? as u64,
            after: position(row, 10)?,
            from: time(row, 11)?,
            first: option(12)?.map(Timestamp::from_micros),
        },
        resources: row.try_get::<_, i64>(8)? as u64,
        shards,
        versions,
        stored_versions: versions,
        references: References::new(),
    })
}

fn live_shard(row: &Row) -> Result<LiveShard, Failure> {
    Ok(LiveShard {
        id: ShardId(row.try_get::<_, i64>(0)? as u64),
        start: row.try_get(1)?,
        resources: row.try_get::<_, i64>(2)? as u64,
        bytes: row.try_get::<_, i64>(3)? as u64,
        version: position(row, 4)?,
        time: time(row, 5)?,
        dirty: false,
    })
}

fn load_shards(
    statements: &mut Statements<'_>,
    set: SetId,
    row: &Row,
    rule: ShardRule,
) -> Result<LiveShards, Failure> {
    let rows = statements.query(
        "SELECT id, start_key, resources, bytes, version, time FROM abreast.shards WHERE set_id = $1 AND NOT retired",
        &params![set.0 => INT8],
    )?;
    let mut list = rows.iter().map(live_shard).collect::<Result<Vec<_>, _>>()?;
    list.sort_by(|one, other| one.start.cmp(&other.start));
    let (next_id, highest) = (row.try_get::<_, i64>(13)? as u64, row.try_get(14)?);
    if list.first().is_none_or(|first| !first.start.is_empty()) {
        return Err(Failure::Damaged(format!("set {} lacks its first shard", set.0)));
    }
    Ok(LiveShards::new(list, next_id, highest, rule))
}

/// Reads the shards that were written after a revision.
fn refresh_shards(
    statements: &mut Statements<'_>,
    set: SetId,
    revision: i64,
    shards: &mut LiveShards,
    row: &Row,
) -> Result<(), Failure> {
    let rows = statements.query(
        "SELECT id, start_key, resources, bytes, version, time, retired FROM abreast.shards \
         WHERE set_id = $1 AND revision > $2",
        &params![set.0 => INT8, revision => INT8],
    )?;
    let (mut live, mut retired) = (Vec::new(), Vec::new());
    for row in &rows {
        let shard = live_shard(row)?;
        if row.try_get(6)? {
            retired.push(shard.id);
        } else {
            live.push(shard);
        }
    }
    shards.take_over(live, &retired, row.try_get::<_, i64>(13)? as u64, row.try_get(14)?);
    Ok(())
}

/// Stores the data of a set after a batch, in the same transaction.
pub(crate) fn store(tables: &mut PostgresTables<'_>, state: &mut SetState) -> Result<(), Failure> {
    tables.store_shards(state)?;
    let (page, versions) = (state.page, state.versions);
    state.stored_versions = versions;
    let number = |position: Option<Position>| position.map(|position| position.0 as i64);
    let params = params![
        tables.set => INT8,
        state.importing => BOOL,
        state.position.0 as i64 => INT8,
        state.time.as_micros() => INT8,
        state.resources as i64 => INT8,
        page.number as i64 => INT8,
        page.after.0 as i64 => INT8,
        page.from.as_micros() => INT8,
        page.first.map(Timestamp::as_micros) => INT8,
        state.shards.next_id() as i64 => INT8,
        state.shards.highest().map(str::to_owned) => TEXT,
        tables.revision => INT8,
        versions.keep => BOOL,
        number(versions.begun) => INT8,
        number(versions.since) => INT8,
        versions.kept_bytes as i64 => INT8,
        versions.collector.counted_as.map(i64::from) => INT8,
        versions.collector.counted.0 as i64 => INT8,
        versions.collector.aged.0 as i64 => INT8,
        versions.collector.sized.0 as i64 => INT8,
    ];
    tables.statements.write(
        "UPDATE abreast.sets SET importing = $2, position = $3, time = $4, resources = $5, page = $6, page_after = $7, \
         page_from = $8, page_first = $9, next_shard = $10, highest = $11, revision = $12, versions = $13, \
         versions_begun = $14, versions_since = $15, kept_bytes = $16, counted_as = $17, counted = $18, aged = $19, \
         sized = $20 WHERE id = $1",
        params,
    )
}
