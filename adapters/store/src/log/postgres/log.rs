//! The change log on PostgreSQL.

use crate::database::queue::Queue;
use crate::log::commit_signal::is_beyond;
use crate::log::limits::{
    check_batch, check_imported, check_set, check_witnesses, in_batches, no_set, other_beginning,
};
use crate::log::postgres::last_heads::LastHeads;
use crate::log::postgres::load::{read_state, set_columns};
use crate::log::postgres::parts::{Scan, scan};
use crate::log::postgres::rows::{
    change_columns, content, key_hash, position, read_resource, read_version, read_witnessed,
    resource_columns, time, version_columns,
};
use crate::log::postgres::tables::PostgresTables;
use crate::log::postgres::texts::{check_imported_texts, check_texts};
use crate::log::postgres::watch::Watch;
use crate::log::set_state::SetState;
use crate::log::shards::LiveShards;
use crate::log::versions::{add_current, current, stored_from};
use crate::log::work::{Job, Outcome, Reply, Work};
use crate::postgres::client::{Client, repeat};
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::params;
use abreast_core::{
    AppendDone, Beginning, Change, ChangeLog, ChangeRecord, Clock, Collected, ContentId, ErrorKind,
    Head, Imported, KeyRange, LogError, NewSet, Order, Page, Position, Resource, ResourceSet,
    SetId, Shard, ShardId, ShardRule, Version, VersionPolicy, Visit, Witnessed,
};
use abreast_webtypes::Timestamp;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// A change log in a PostgreSQL database, in which any number of nodes record.
///
/// A transaction that records changes locks the row of its set, reads what other nodes recorded, and
/// decides the batch by the same rules as every store. Positions are given out under that lock, so
/// they have no gaps and become visible in their order. The waiting batches of a node are recorded
/// together. If the connection is lost during a commit, the next transaction finds out whether the
/// batch is recorded.
///
/// Statements are not prepared and transactions do not depend on a session, so a proxy that gives
/// each transaction another connection may be between.
pub struct PostgresLog {
    shared: Arc<Shared>,
    /// The process that must be the worker of the set of each request; any if `None`.
    worker: Option<i64>,
}

/// The threads and connections of a log and its views.
pub(crate) struct Shared {
    pub(crate) client: Arc<Client>,
    pub(crate) queues: Vec<Arc<Queue<Job>>>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) last_heads: LastHeads,
    pub(crate) threads: Vec<JoinHandle<()>>,
    pub(crate) rule: ShardRule,
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

impl fmt::Debug for PostgresLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLog").finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for queue in &self.queues {
            queue.close();
        }
        self.watch.end();
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

/// Columns of shards, with the creation time of their set, which [`shard`] reads, and the set `$1`.
macro_rules! shard_columns {
    () => {
        "shards.id, start_key, end_key, shards.resources, version, shards.time, retired, coalesce(restarted, created) \
         FROM abreast.shards JOIN abreast.sets ON sets.id = set_id WHERE set_id = $1"
    };
}

/// Changes after a position, up to another one.
const CHANGES: &str = concat!(
    "SELECT ",
    change_columns!(),
    " FROM abreast.changes WHERE set_id = $1 AND position > $2 AND position <= $3 ORDER BY position LIMIT $4"
);
/// The latest change of each resource. Both halves come from an index in the order of positions.
const LATEST: &str = concat!(
    "SELECT ",
    change_columns!(),
    " FROM abreast.changes WHERE set_id = $1 AND position IN (\
     (SELECT position FROM abreast.resources WHERE set_id = $1 AND position > 0 AND position > $2 AND position <= $3 \
     ORDER BY position LIMIT $4) UNION ALL \
     (SELECT position FROM abreast.tombstones WHERE set_id = $1 AND position > $2 AND position <= $3 \
     ORDER BY position LIMIT $4) ORDER BY position LIMIT $4) ORDER BY position"
);

impl PostgresLog {
    pub(crate) fn of(shared: Shared) -> Self {
        Self { shared: Arc::new(shared), worker: None }
    }

    fn push(&self, set: SetId, work: Work, reply: Reply) {
        self.queue_of(set).push(Job { work, reply, worker: self.worker });
    }

    fn call(&self, set: SetId, work: Work) -> Result<Outcome, LogError> {
        let (sender, receiver) = sync_channel(1);
        self.push(set, work, Reply::Call(sender));
        let ended = || LogError::new(ErrorKind::Io, "the store is closed");
        receiver.recv().unwrap_or_else(|_| Err(ended()))
    }

    fn queue_of(&self, set: SetId) -> &Queue<Job> {
        &self.shared.queues[set.0.unsigned_abs() as usize % self.shared.queues.len()]
    }

    fn resource_row(&self, set: SetId, key: &str) -> Result<Option<Resource>, LogError> {
        const DOING: &str = "cannot read a resource";
        let rows = self.shared.client.query(
            DOING,
            concat!(
                "SELECT ",
                resource_columns!(),
                " FROM abreast.resources WHERE set_id = $1 AND key_hash = $2"
            ),
            &[(&set.0, Type::INT8), (&key_hash(key), Type::BYTEA)],
        )?;
        let resource = rows.first().map(read_resource).transpose();
        resource.map_err(|failure| failure.into_error(DOING))
    }
}

/// Reads each row.
fn each<T>(
    doing: &str,
    rows: &[Row],
    read: impl FnMut(&Row) -> Result<T, Failure>,
) -> Result<Vec<T>, LogError> {
    rows.iter().map(read).collect::<Result<_, _>>().map_err(|failure| failure.into_error(doing))
}

impl ChangeLog for PostgresLog {
    fn now(&self) -> Timestamp {
        self.shared
            .clock
            .as_ref()
            .map_or_else(|| self.shared.client.clock.now(), |clock| clock.now())
    }

    fn open_set(&self, set: &NewSet) -> Result<ResourceSet, LogError> {
        check_set(set)?;
        let client = &*self.shared.client;
        repeat("cannot open the set", || {
            let age = i64::try_from(set.page_rule.age.as_micros()).unwrap_or(i64::MAX);
            let changes = i64::from(set.page_rule.changes);
            let in_log = set.beginning == Beginning::Log;
            let (mut statements, known) = Statements::begin(
                client,
                "SELECT id, in_log FROM abreast.sets WHERE slug = $1",
                &params![set.slug.clone() => TEXT],
            )?;
            if let Some(row) = known {
                let id: i64 = row.try_get(0)?;
                if row.try_get::<_, bool>(1)? != in_log {
                    return Ok(Err(other_beginning(set)));
                }
                statements.write(
                    "UPDATE abreast.sets SET page_changes = $2, page_age = $3 \
                     WHERE id = $1 AND (page_changes <> $2 OR page_age <> $3)",
                    params![id => INT8, changes => INT8, age => INT8],
                )?;
                statements.commit()?;
                return Ok(Ok(ResourceSet { id: SetId(id), slug: set.slug.clone() }));
            }
            let now = match &self.shared.clock {
                Some(clock) => clock.now(),
                None => database_time(&mut statements)?,
            };
            let mut state = SetState::new(now, set, LiveShards::first(self.shared.rule));
            let row = statements.query_first(
                "INSERT INTO abreast.sets (slug, created, importing, in_log, page_changes, page_age, position, time, \
                 resources, page, page_after, page_from, next_shard, revision) \
                 VALUES ($1, $2, $3, $4, $5, $6, 0, $2, 0, 1, 0, $2, $7, 1) \
                 ON CONFLICT (slug) DO NOTHING RETURNING id",
                &params![
                    set.slug.clone() => TEXT, now.as_micros() => INT8, state.importing => BOOL, in_log => BOOL,
                    changes => INT8, age => INT8, state.shards.next_id() as i64 => INT8,
                ],
            )?;
            // Another node created it meanwhile: the next attempt finds it.
            let Some(row) = row else { return Err(Failure::Late) };
            let id: i64 = row.try_get(0)?;
            let mut tables = PostgresTables::new(statements, SetId(id), 1);
            tables.put_pages(&[&state.page.page()])?;
            tables.store_shards(&mut state)?;
            tables.statements.commit()?;
            Ok(Ok(ResourceSet { id: SetId(id), slug: set.slug.clone() }))
        })?
    }

    fn sets(&self) -> Result<Vec<ResourceSet>, LogError> {
        const DOING: &str = "cannot read the sets";
        let rows = self.shared.client.query(
            DOING,
            "SELECT id, slug FROM abreast.sets ORDER BY id",
            &[],
        )?;
        each(DOING, &rows, |row| {
            Ok(ResourceSet { id: SetId(row.try_get(0)?), slug: row.try_get(1)? })
        })
    }

    fn find_set(&self, slug: &str) -> Result<Option<ResourceSet>, LogError> {
        const DOING: &str = "cannot find a set";
        if slug.contains('\0') {
            return Ok(None);
        }
        let rows = self.shared.client.query(
            DOING,
            "SELECT id FROM abreast.sets WHERE slug = $1",
            &[(&slug, Type::TEXT)],
        )?;
        let found = each(DOING, &rows, |row| Ok(SetId(row.try_get(0)?)))?;
        Ok(found.first().map(|id| ResourceSet { id: *id, slug: slug.to_owned() }))
    }

    fn check_available(&self) -> Result<(), LogError> {
        let ask =
            || self.shared.client.query("cannot reach the database", "SELECT 1", &[]).map(drop);
        self.shared.last_heads.ask(ask)
    }

    fn head(&self, set: SetId) -> Result<Head, LogError> {
        const DOING: &str = "cannot read the head of a set";
        let rows = self.shared.client.query(
            DOING,
            concat!("SELECT ", set_columns!(), " FROM abreast.sets WHERE id = $1"),
            &[(&set.0, Type::INT8)],
        )?;
        let row = rows.first().ok_or_else(|| no_set(set))?;
        let state = read_state(row, LiveShards::first(self.shared.rule));
        Ok(state.map_err(|failure| failure.into_error(DOING))?.head())
    }

    fn head_for_documents(&self, set: SetId) -> Result<Head, LogError> {
        self.shared.last_heads.read(set, || self.head(set))
    }

    fn wait_for(&self, known: &[(SetId, Position)], timeout: Duration) -> Result<bool, LogError> {
        if is_beyond(self, known)? {
            return Ok(true);
        }
        let seen = || Ok(self.shared.watch.is_beyond(known) && is_beyond(self, known)?);
        self.shared.watch.during(|| self.shared.watch.signal.wait_until(timeout, seen))
    }

    /// More than 10,000 resources become several transactions.
    fn import(&self, set: SetId, resources: Vec<Imported>) -> Result<(), LogError> {
        check_imported(&resources)?;
        resources.iter().try_for_each(check_imported_texts)?;
        in_batches(resources, |part| self.call(set, Work::Import(set, part)).map(drop))
    }

    fn complete_import(&self, set: SetId) -> Result<(), LogError> {
        self.call(set, Work::CompleteImport(set)).map(drop)
    }

    fn append_then(&self, set: SetId, changes: Vec<Change>, done: AppendDone) {
        let checked = check_batch(&changes).and_then(|()| changes.iter().try_for_each(check_texts));
        let work = match checked {
            Ok(()) => Work::Append(set, changes),
            Err(refused) => Work::Refuse(refused),
        };
        self.push(set, work, Reply::Append(done));
    }

    fn take_over(
        &self,
        set: SetId,
        lease: &str,
        process: i64,
    ) -> Result<Option<Arc<dyn ChangeLog>>, LogError> {
        let view = Self { shared: Arc::clone(&self.shared), worker: None };
        view.call(set, Work::TakeOver(set, lease.to_owned(), process))?;
        Ok(Some(Arc::new(Self { worker: Some(process), ..view })))
    }

    fn refresh_witnesses(
        &self,
        set: SetId,
        witnesses: Vec<(String, Vec<u8>)>,
    ) -> Result<(), LogError> {
        check_witnesses(&witnesses)?;
        in_batches(witnesses, |part| self.call(set, Work::RefreshWitnesses(set, part)).map(drop))
    }

    fn read(
        &self,
        set: SetId,
        after: Position,
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError> {
        let until = self.head(set)?.position;
        self.shared.client.read_parts(CHANGES, set, (after, until), visit)
    }

    fn latest(
        &self,
        set: SetId,
        after: Position,
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError> {
        self.head(set)?;
        // Continue after the head: the latest change of a resource that changes meanwhile is there.
        self.shared.client.read_parts(LATEST, set, (after, Position(i64::MAX as u64)), visit)
    }

    fn latest_before(&self, set: SetId, before: Position) -> Result<Option<Position>, LogError> {
        const DOING: &str = "cannot read the log";
        self.head(set)?;
        let rows = self.shared.client.query(
            DOING,
            "SELECT position FROM (\
             (SELECT position FROM abreast.resources WHERE set_id = $1 AND position > 0 AND position < $2 \
             ORDER BY position DESC LIMIT 1) UNION ALL \
             (SELECT position FROM abreast.tombstones WHERE set_id = $1 AND position < $2 \
             ORDER BY position DESC LIMIT 1)) AS found ORDER BY position DESC LIMIT 1",
            &[(&set.0, Type::INT8), (&(before.0 as i64), Type::INT8)],
        )?;
        Ok(each(DOING, &rows, |row| position(row, 0))?.pop())
    }

    fn position_at(&self, set: SetId, at: Timestamp) -> Result<Position, LogError> {
        const DOING: &str = "cannot read the log";
        if at < self.head(set)?.created {
            return Ok(Position(0));
        }
        // Times increase with positions: the page with the time, and the change in the page.
        let rows = self.shared.client.query(
            DOING,
            "SELECT coalesce((SELECT position FROM abreast.changes WHERE set_id = $1 AND position > after \
             AND (last IS NULL OR position <= last) AND time <= $2 ORDER BY position DESC LIMIT 1), after) \
             FROM abreast.pages WHERE set_id = $1 AND from_time <= $2 ORDER BY from_time DESC, number DESC LIMIT 1",
            &[(&set.0, Type::INT8), (&at.as_micros(), Type::INT8)],
        )?;
        Ok(each(DOING, &rows, |row| position(row, 0))?.pop().unwrap_or_default())
    }

    fn resource(&self, set: SetId, key: &str) -> Result<Option<Resource>, LogError> {
        let found = self.resource_row(set, key)?;
        if found.is_none() {
            self.head(set)?;
        }
        Ok(found)
    }

    fn idempotency_key(&self, set: SetId, prefix: &str) -> Result<Option<String>, LogError> {
        let rows = self.shared.client.query(
            "cannot read an idempotency key",
            "SELECT key FROM abreast.idempotency WHERE set_id = $1 AND key >= $2 ORDER BY key LIMIT 1",
            &[(&set.0, Type::INT8), (&prefix, Type::TEXT)],
        )?;
        let next = rows.first().and_then(|row| row.try_get::<_, String>(0).ok());
        Ok(next.filter(|key| key.starts_with(prefix)))
    }

    fn scan(
        &self,
        set: SetId,
        range: &KeyRange,
        visit: Visit<'_, Resource>,
    ) -> Result<(), LogError> {
        const SCAN: Scan = scan!(resource_columns!(), 7);
        self.head(set)?;
        self.shared.client.scan_rows(set, range, SCAN, &mut |row| Ok(visit(&read_resource(row)?)))
    }

    fn scan_witnesses(
        &self,
        set: SetId,
        range: &KeyRange,
        visit: Visit<'_, Witnessed>,
    ) -> Result<(), LogError> {
        const SCAN: Scan = scan!("key, witness, content", 0);
        self.head(set)?;
        self.shared.client.scan_rows(set, range, SCAN, &mut |row| Ok(visit(&read_witnessed(row)?)))
    }

    fn shards(&self, set: SetId) -> Result<Vec<Shard>, LogError> {
        const DOING: &str = "cannot read the shards";
        let rows = self.shared.client.query(
            DOING,
            concat!("SELECT ", shard_columns!(), " AND NOT retired"),
            &[(&set.0, Type::INT8)],
        )?;
        // Every set has a shard.
        if rows.is_empty() {
            return Err(no_set(set));
        }
        let mut shards = each(DOING, &rows, shard)?;
        shards.sort_by(|one, other| one.range.start.cmp(&other.range.start));
        Ok(shards)
    }

    fn shard(&self, set: SetId, id: ShardId) -> Result<Option<Shard>, LogError> {
        const DOING: &str = "cannot read a shard";
        let number = i64::try_from(id.0).unwrap_or(i64::MAX);
        let rows = self.shared.client.query(
            DOING,
            concat!("SELECT ", shard_columns!(), " AND shards.id = $2"),
            &[(&set.0, Type::INT8), (&number, Type::INT8)],
        )?;
        let Some(found) = each(DOING, &rows, shard)?.pop() else {
            return self.head(set).map(|_| None);
        };
        if !found.retired {
            return Ok(Some(found));
        }
        // The live shards that start in its range cover this range exactly.
        let rows = self.shared.client.query(
            DOING,
            "SELECT coalesce(sum(resources), 0)::bigint, coalesce(max(version), 0), coalesce(max(time), 0) \
             FROM abreast.shards WHERE set_id = $1 AND NOT retired AND start_key >= $2 \
             AND ($3 IS NULL OR start_key < $3)",
            &[
                (&set.0, Type::INT8),
                (&found.range.start, Type::TEXT),
                (&found.range.end, Type::TEXT),
            ],
        )?;
        let sums = each(DOING, &rows, |row| {
            Ok((row.try_get::<_, i64>(0)? as u64, position(row, 1)?, time(row, 2)?))
        })?;
        let (resources, version, time) = sums.first().copied().unwrap_or_default();
        let time = if version == Position(0) { self.head(set)?.created } else { time };
        Ok(Some(Shard { resources, version, time, ..found }))
    }

    fn keep_versions(&self, set: SetId, keep: bool) -> Result<(), LogError> {
        self.call(set, Work::KeepVersions(set, keep)).map(drop)
    }

    fn collect_versions(
        &self,
        set: SetId,
        policy: &VersionPolicy,
        limit: usize,
    ) -> Result<Collected, LogError> {
        match self.call(set, Work::CollectVersions(set, *policy, limit))? {
            Outcome::Collected(collected) => Ok(collected),
            Outcome::Appended(_) | Outcome::Set(_) | Outcome::Done => {
                unreachable!("collecting returns its own result")
            }
        }
    }

    fn versions(
        &self,
        set: SetId,
        key: &str,
        from: Timestamp,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Version>, LogError> {
        const DOING: &str = "cannot read the versions of a resource";
        const OLDEST: &str = concat!(
            "SELECT ",
            version_columns!(),
            " FROM abreast.versions WHERE set_id = $1 AND key_hash = $2 AND time >= $3 ORDER BY time LIMIT $4"
        );
        const NEWEST: &str = concat!(
            "SELECT ",
            version_columns!(),
            " FROM abreast.versions WHERE set_id = $1 AND key_hash = $2 AND time <= $3 ORDER BY time DESC LIMIT $4"
        );
        let keeps = self.head(set)?.versions_since.is_some();
        // Versions can be older than a restarted log: imported resources count from the set's
        // creation.
        let rows = self.shared.client.query(
            DOING,
            "SELECT created FROM abreast.sets WHERE id = $1",
            &[(&set.0, Type::INT8)],
        )?;
        let created = each(DOING, &rows, |row| time(row, 0))?.pop().ok_or_else(|| no_set(set))?;
        let Some(stored) = stored_from(from, order, created) else { return Ok(Vec::new()) };
        // Read first: a change meanwhile makes it one of the stored versions.
        let current = if keeps { self.current_version(set, key, created)? } else { None };
        let rows = self.shared.client.query(
            DOING,
            if order == Order::OldestFirst { OLDEST } else { NEWEST },
            &[
                (&set.0, Type::INT8),
                (&key_hash(key), Type::BYTEA),
                (&stored.as_micros(), Type::INT8),
                (&i64::try_from(limit).unwrap_or(i64::MAX), Type::INT8),
            ],
        )?;
        let mut found = each(DOING, &rows, |row| read_version(row, created))?;
        add_current(&mut found, current, from, order, limit);
        Ok(found)
    }

    fn needs_content(&self, id: &ContentId) -> Result<bool, LogError> {
        self.shared.client.needs_content(id)
    }

    fn unneeded_contents(
        &self,
        after: Option<ContentId>,
        limit: usize,
    ) -> Result<Vec<ContentId>, LogError> {
        const DOING: &str = "cannot read which stored contents nobody needs";
        let after = after.as_ref().map_or(&[][..], |id| id.as_bytes());
        let rows = self.shared.client.query(
            DOING,
            "SELECT DISTINCT id FROM abreast.contents WHERE needed = 0 AND id > $1 ORDER BY id LIMIT $2",
            &[(&after, Type::BYTEA), (&i64::try_from(limit).unwrap_or(i64::MAX), Type::INT8)],
        )?;
        Ok(each(DOING, &rows, |row| content(row, 0))?.into_iter().flatten().collect())
    }

    fn forget_contents(&self, ids: Vec<ContentId>) -> Result<(), LogError> {
        let ids: Vec<&[u8]> = ids.iter().map(|id| id.as_bytes().as_slice()).collect();
        self.shared
            .client
            .query(
                "cannot forget stored contents",
                "DELETE FROM abreast.contents WHERE id = ANY ($1) AND needed = 0",
                &[(&ids, Type::BYTEA_ARRAY)],
            )
            .map(drop)
    }

    fn pages(&self, set: SetId, first: u64, limit: usize) -> Result<Vec<Page>, LogError> {
        const DOING: &str = "cannot read the pages";
        let rows = self.shared.client.query(
            DOING,
            "SELECT number, after, last, from_time, until_time FROM abreast.pages \
             WHERE set_id = $1 AND number >= $2 ORDER BY number LIMIT $3",
            &[
                (&set.0, Type::INT8),
                (&i64::try_from(first).unwrap_or(i64::MAX), Type::INT8),
                (&i64::try_from(limit).unwrap_or(i64::MAX), Type::INT8),
            ],
        )?;
        if rows.is_empty() {
            self.head(set)?;
        }
        each(DOING, &rows, |row| {
            Ok(Page {
                number: row.try_get::<_, i64>(0)? as u64,
                after: position(row, 1)?,
                last: row.try_get::<_, Option<i64>>(2)?.map(|last| Position(last as u64)),
                from: time(row, 3)?,
                until: row.try_get::<_, Option<i64>>(4)?.map(Timestamp::from_micros),
            })
        })
    }
}

impl PostgresLog {
    /// The present content of a resource as a version; `created` is the set's creation time.
    fn current_version(
        &self,
        set: SetId,
        key: &str,
        created: Timestamp,
    ) -> Result<Option<Version>, LogError> {
        const DOING: &str = "cannot read the versions of a resource";
        let Some(resource) = self.resource_row(set, key)? else { return Ok(None) };
        if resource.position == Position(0) {
            return Ok(current(&resource, created));
        }
        let rows = self.shared.client.query(
            DOING,
            "SELECT time FROM abreast.changes WHERE set_id = $1 AND position = $2",
            &[(&set.0, Type::INT8), (&(resource.position.0 as i64), Type::INT8)],
        )?;
        let changed = each(DOING, &rows, |row| time(row, 0))?.pop();
        Ok(changed.and_then(|time| current(&resource, time)))
    }
}

/// The database's clock.
fn database_time(statements: &mut Statements<'_>) -> Result<Timestamp, Failure> {
    let row = statements
        .query_first("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", &[])?;
    row.map_or(Ok(Timestamp::default()), |row| time(&row, 0))
}

fn shard(row: &Row) -> Result<Shard, Failure> {
    let version = position(row, 4)?;
    Ok(Shard {
        id: ShardId(row.try_get::<_, i64>(0)? as u64),
        range: KeyRange { start: row.try_get(1)?, end: row.try_get(2)? },
        resources: row.try_get::<_, i64>(3)? as u64,
        version,
        time: time(row, if version == Position(0) { 7 } else { 5 })?,
        retired: row.try_get(6)?,
    })
}
