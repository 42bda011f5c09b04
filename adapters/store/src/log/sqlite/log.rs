//! The change log on SQLite.

use crate::database::connection::Durability;
use crate::database::locked::DatabaseLock;
use crate::database::open::OpenDatabase;
use crate::log::commit_signal::is_beyond;
use crate::log::limits::{
    check_batch, check_imported, check_set, check_witnesses, in_batches, no_set,
};
use crate::log::set_rows::empty_change;
use crate::log::sqlite::recorder::{Heads, LogRecorder};
use crate::log::sqlite::rows::{
    change_columns, content, read_change, read_resource, read_version, read_witnessed,
    resource_columns, version_columns,
};
use crate::log::versions::{add_current, current, stored_from};
use crate::log::work::{Job, Outcome, Reply, Work};
use abreast_core::{
    AppendDone, Change, ChangeLog, ChangeRecord, Clock, Collected, ContentId, ErrorKind, Head,
    Imported, KeyRange, LogError, NewSet, Order, Page, Position, Resource, ResourceSet, SetId,
    Shard, ShardId, ShardRule, Version, VersionPolicy, Visit, Witnessed,
};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/log_0001.sql"),
    include_str!("../../migrations/log_0002.sql"),
    include_str!("../../migrations/log_0003.sql"),
    include_str!("../../migrations/log_0004.sql"),
    include_str!("../../migrations/log_0005.sql"),
    include_str!("../../migrations/log_0006.sql"),
    include_str!("../../migrations/log_0007.sql"),
    include_str!("../../migrations/log_0008.sql"),
    include_str!("../../migrations/log_0009.sql"),
];
/// Changes read in one transaction of [`ChangeLog::read`].
const READ_MAX: i64 = 5_000;
/// Changes in the first transaction of a read.
const READ_FIRST: i64 = 32;

/// Options for opening a [`SqliteLog`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SqliteOptions {
    shard_rule: ShardRule,
}

impl SqliteOptions {
    /// Sets other sizes for shards than [`ShardRule::DEFAULT`].
    #[must_use]
    pub fn with_shard_rule(mut self, rule: ShardRule) -> Self {
        self.shard_rule = rule;
        self
    }

    /// Opens a store with these options. See [`SqliteLog::open`].
    ///
    /// # Errors
    /// See [`SqliteLog::open`].
    pub fn open(self, path: &Path, clock: Arc<dyn Clock>) -> Result<SqliteLog, LogError> {
        self.open_in(path, None, clock)
    }

    /// Opens an empty store in a temporary folder. See [`SqliteLog::temporary`].
    ///
    /// # Errors
    /// See [`SqliteLog::temporary`].
    pub fn open_temporary(self, clock: Arc<dyn Clock>) -> Result<SqliteLog, LogError> {
        let folder = tempfile::tempdir().map_err(|cause| {
            LogError::new(ErrorKind::Io, "cannot make a temporary folder for a store")
                .with_cause(cause)
        })?;
        self.open_in(&folder.path().join("log.sqlite"), Some(folder), clock)
    }

    fn open_in(
        self,
        path: &Path,
        temporary: Option<TempDir>,
        clock: Arc<dyn Clock>,
    ) -> Result<SqliteLog, LogError> {
        let lock = DatabaseLock::take(path)?;
        let durability = match temporary {
            Some(_) => Durability::ProcessEnd,
            None => Durability::PowerLoss,
        };
        let connection = lock.open_until(durability, MIGRATIONS)?;
        let heads = Arc::new(Heads::default());
        let recorder = LogRecorder::new(clock, self.shard_rule, Arc::clone(&heads));
        let database = OpenDatabase::start(path, lock, connection, recorder)?;
        Ok(SqliteLog { database, heads, _temporary: temporary })
    }
}

/// A change log in one SQLite file.
///
/// One thread writes: all waiting jobs are committed as one transaction, and each caller gets its
/// reply after the commit reached the disk (write-ahead log, `synchronous=FULL`). Reads use
/// connections of their own and see committed changes only. A second process is refused.
///
/// [`ChangeLog::scan`] is one read transaction, during which the write-ahead log grows: scan a
/// shard at a time. [`ChangeLog::read`] uses a short transaction for each part, and ends at the
/// position that was the head at the start.
///
/// After a failure of the disk, changes are refused until the store is opened again, because the
/// disk may have more or less than the writer's memory. A full disk refuses the changes and
/// continues.
pub struct SqliteLog {
    database: OpenDatabase<Job>,
    heads: Arc<Heads>,
    /// The folder of a temporary store, deleted after the database was closed.
    _temporary: Option<TempDir>,
}

impl fmt::Debug for SqliteLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLog").finish_non_exhaustive()
    }
}

/// Reads the latest change of each resource. Both halves come from an index in the order of
/// positions, and are merged.
const LATEST: &str = concat!(
    "SELECT ",
    change_columns!(),
    " FROM changes WHERE set_id = ?1 AND position IN (SELECT position FROM (\
     SELECT position FROM resources WHERE set_id = ?1 AND position > ?2 AND position > 0 AND position <= ?3 \
     UNION ALL SELECT position FROM tombstones WHERE set_id = ?1 AND position > ?2 AND position <= ?3 \
     ORDER BY position LIMIT ?4)) ORDER BY position"
);

impl SqliteLog {
    /// Opens a store; creates the file if it does not exist.
    ///
    /// # Errors
    /// When another process has it open, the disk fails, or it was written by a newer version.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, LogError> {
        SqliteOptions::default().open(path, clock)
    }

    /// Opens an empty store in a temporary folder, which is deleted together with the store. Changes
    /// are not written through to the disk.
    ///
    /// # Errors
    /// When the folder cannot be made, or the disk fails.
    pub fn temporary(clock: Arc<dyn Clock>) -> Result<Self, LogError> {
        SqliteOptions::default().open_temporary(clock)
    }

    /// Whether opening this file would change it: it has an older schema, or the form that it has
    /// in a backup. Read-only.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_changed_by_opening(path: &Path) -> Result<bool, LogError> {
        crate::database::migration::is_changed_by_opening(path, MIGRATIONS)
    }

    /// Records the waiting jobs, then ends the writer. Later changes are refused, reads continue.
    pub fn close(&self) {
        self.database.close();
    }

    fn call(&self, work: Work) -> Result<Outcome, LogError> {
        self.database.call(|sender| Job::new(work, Reply::Call(sender)))
    }

    /// Visits a part of the changes that a statement selects, up to the position `until`. Returns
    /// the last position of the part.
    fn read_page(
        &self,
        sql: &str,
        set: SetId,
        after: Position,
        until: Position,
        most: i64,
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<ControlFlow<(), Position>, LogError> {
        self.database.readers.with("cannot read the log", |connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![set.0, after.0 as i64, until.0 as i64, most])?;
            let (mut change, mut count) = (empty_change(), 0);
            while let Some(row) = rows.next()? {
                read_change(row, &mut change)?;
                count += 1;
                if visit(&change).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(if count < most { until } else { change.position }))
        })
    }

    /// Visits the changes that a statement selects, a part at a time, up to a position. The first
    /// part is small, because many callers need one change only, and a statement may have to find
    /// the positions of a whole part before it returns the first change.
    fn read_pages(
        &self,
        sql: &str,
        set: SetId,
        (mut after, until): (Position, Position),
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError> {
        let mut most = READ_FIRST;
        while after < until {
            match self.read_page(sql, set, after, until, most, visit)? {
                ControlFlow::Break(()) => return Ok(()),
                ControlFlow::Continue(seen) => after = seen,
            }
            most = (most * 8).min(READ_MAX);
        }
        Ok(())
    }
}

impl ChangeLog for SqliteLog {
    fn check_space(&self) -> Result<(), LogError> {
        self.database.presence.check_space()
    }

    fn open_set(&self, set: &NewSet) -> Result<ResourceSet, LogError> {
        check_set(set)?;
        match self.call(Work::OpenSet(set.clone()))? {
            Outcome::Set(set) => Ok(set),
            Outcome::Appended(_) | Outcome::Collected(_) | Outcome::Done => {
                unreachable!("opening a set answers with the set")
            }
        }
    }

    fn sets(&self) -> Result<Vec<ResourceSet>, LogError> {
        self.database.readers.with("cannot read the sets", |connection| {
            let mut statement =
                connection.prepare_cached("SELECT id, slug FROM sets ORDER BY id")?;
            statement
                .query_map([], |row| Ok(ResourceSet { id: SetId(row.get(0)?), slug: row.get(1)? }))?
                .collect()
        })
    }

    fn find_set(&self, slug: &str) -> Result<Option<ResourceSet>, LogError> {
        let id = self.database.readers.with("cannot find a set", |connection| {
            let mut statement = connection.prepare_cached("SELECT id FROM sets WHERE slug = ?1")?;
            statement.query_row([slug], |row| row.get(0)).optional()
        })?;
        Ok(id.map(|id| ResourceSet { id: SetId(id), slug: slug.to_owned() }))
    }

    fn check_available(&self) -> Result<(), LogError> {
        self.database.presence.check()
    }

    fn head(&self, set: SetId) -> Result<Head, LogError> {
        self.heads.of(set).ok_or_else(|| no_set(set))
    }

    fn known_head(&self, set: SetId) -> Option<Head> {
        self.heads.of(set)
    }

    fn wait_for(&self, known: &[(SetId, Position)], timeout: Duration) -> Result<bool, LogError> {
        self.heads.commit_signal.wait_until(timeout, || is_beyond(self, known))
    }

    /// More than 10,000 resources become several transactions.
    fn import(&self, set: SetId, resources: Vec<Imported>) -> Result<(), LogError> {
        check_imported(&resources)?;
        in_batches(resources, |part| self.call(Work::Import(set, part)).map(drop))
    }

    fn complete_import(&self, set: SetId) -> Result<(), LogError> {
        self.call(Work::CompleteImport(set)).map(drop)
    }

    fn append_then(&self, set: SetId, changes: Vec<Change>, done: AppendDone) {
        let work = match check_batch(&changes) {
            Ok(()) => Work::Append(set, changes),
            Err(refused) => Work::Refuse(refused),
        };
        self.database.queue.push(Job::new(work, Reply::Append(done)));
    }

    fn refresh_witnesses(
        &self,
        set: SetId,
        witnesses: Vec<(String, Vec<u8>)>,
    ) -> Result<(), LogError> {
        check_witnesses(&witnesses)?;
        in_batches(witnesses, |part| self.call(Work::RefreshWitnesses(set, part)).map(drop))
    }

    fn read(
        &self,
        set: SetId,
        after: Position,
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError> {
        const SQL: &str = concat!(
            "SELECT ",
            change_columns!(),
            " FROM changes WHERE set_id = ?1 AND position > ?2 AND position <= ?3 ORDER BY position LIMIT ?4"
        );
        let until = self.head(set)?.position;
        self.read_pages(SQL, set, (after, until), visit)
    }

    fn latest(
        &self,
        set: SetId,
        after: Position,
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError> {
        self.head(set)?;
        // Continue after the head: the latest change of a resource that changes meanwhile is there.
        self.read_pages(LATEST, set, (after, Position(i64::MAX as u64)), visit)
    }

    fn latest_before(&self, set: SetId, position: Position) -> Result<Option<Position>, LogError> {
        self.head(set)?;
        self.database.readers.with("cannot read the log", |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT max(position) FROM (\
                 SELECT max(position) AS position FROM resources WHERE set_id = ?1 AND position > 0 AND position < ?2 \
                 UNION ALL SELECT max(position) FROM tombstones WHERE set_id = ?1 AND position < ?2)",
            )?;
            let before = position.0 as i64;
            let found: Option<i64> =
                statement.query_row(params![set.0, before], |row| row.get(0))?;
            Ok(found.map(|found| Position(found as u64)))
        })
    }

    fn position_at(&self, set: SetId, time: Timestamp) -> Result<Position, LogError> {
        // Times increase with positions, so no index by time is needed.
        let head = self.head(set)?;
        if time < head.created {
            return Ok(Position(0));
        }
        let mut beyond = head.position.0 as i64 + 1;
        self.database.readers.with("cannot read the log", |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT position, time FROM changes WHERE set_id = ?1 AND position >= ?2 AND position < ?3 \
                 ORDER BY position LIMIT 1",
            )?;
            // A restarted log may contain changes from before the restart.
            let mut found: i64 = connection
                .prepare_cached("SELECT after FROM pages WHERE set_id = ?1 ORDER BY number LIMIT 1")?
                .query_row([set.0], |row| row.get(0))?;
            // Moves one of the two bounds to a position between them, by its time.
            let mut narrow = |middle: i64, found: &mut i64, beyond: &mut i64| {
                let next = statement
                    .query_row(params![set.0, middle, *beyond], |row| {
                        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
                    })
                    .optional()?;
                match next {
                    Some((position, at)) if at <= time.as_micros() => *found = position,
                    _ => *beyond = middle,
                }
                Ok::<_, rusqlite::Error>(())
            };
            // Most callers pass a time near the start or the end of the log. Both are found fast in
            // a long log too.
            if found + 1 < beyond {
                narrow(found + 1, &mut found, &mut beyond)?;
            }
            let (begin, mut step) = (found, 1);
            while found == begin && beyond - step > begin {
                narrow(beyond - step, &mut found, &mut beyond)?;
                step *= 2;
            }
            while found + 1 < beyond {
                narrow(found + (beyond - found) / 2, &mut found, &mut beyond)?;
            }
            Ok(Position(found as u64))
        })
    }

    fn resource(&self, set: SetId, key: &str) -> Result<Option<Resource>, LogError> {
        self.head(set)?;
        self.database
            .readers
            .with("cannot read a resource", |connection| resource_of(connection, set, key))
    }

    fn idempotency_key(&self, set: SetId, prefix: &str) -> Result<Option<String>, LogError> {
        const SQL: &str =
            "SELECT key FROM idempotency WHERE set_id = ?1 AND key >= ?2 ORDER BY key LIMIT 1";
        let next = |connection: &Connection| {
            let mut statement = connection.prepare_cached(SQL)?;
            statement.query_row((set.0, prefix), |row| row.get::<_, String>(0)).optional()
        };
        let next = self.database.readers.with("cannot read an idempotency key", next)?;
        Ok(next.filter(|key| key.starts_with(prefix)))
    }

    fn scan(
        &self,
        set: SetId,
        range: &KeyRange,
        visit: Visit<'_, Resource>,
    ) -> Result<(), LogError> {
        const FROM: &str = concat!(
            "SELECT ",
            resource_columns!(),
            " FROM resources WHERE set_id = ?1 AND key >= ?2 ORDER BY key"
        );
        const BETWEEN: &str = concat!(
            "SELECT ",
            resource_columns!(),
            " FROM resources WHERE set_id = ?1 AND key >= ?2 AND key < ?3 ORDER BY key"
        );
        self.head(set)?;
        self.database.readers.with("cannot read the resources", |connection| {
            let mut statement =
                connection.prepare_cached(if range.end.is_some() { BETWEEN } else { FROM })?;
            let mut rows = match &range.end {
                Some(end) => statement.query(params![set.0, range.start, end])?,
                None => statement.query(params![set.0, range.start])?,
            };
            let mut resource = Resource::default();
            while let Some(row) = rows.next()? {
                read_resource(row, &mut resource)?;
                if visit(&resource).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn scan_witnesses(
        &self,
        set: SetId,
        range: &KeyRange,
        visit: Visit<'_, Witnessed>,
    ) -> Result<(), LogError> {
        self.head(set)?;
        self.database.readers.with("cannot read the resources", |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT key, witness, content FROM resources WHERE set_id = ?1 AND key >= ?2 ORDER BY key",
            )?;
            let mut rows = statement.query(params![set.0, range.start])?;
            let mut seen = Witnessed::default();
            while let Some(row) = rows.next()? {
                read_witnessed(row, &mut seen)?;
                let is_beyond = range.end.as_ref().is_some_and(|end| seen.key >= *end);
                if is_beyond || visit(&seen).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn shards(&self, set: SetId) -> Result<Vec<Shard>, LogError> {
        let created = self.head(set)?.created;
        self.database.readers.with("cannot read the shards", |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, start_key, end_key, resources, version, time, retired FROM shards \
                 WHERE set_id = ?1 AND retired = 0 ORDER BY start_key",
            )?;
            statement.query_map([set.0], |row| shard(row, created))?.collect()
        })
    }

    fn shard(&self, set: SetId, id: ShardId) -> Result<Option<Shard>, LogError> {
        let created = self.head(set)?.created;
        let Ok(number) = i64::try_from(id.0) else { return Ok(None) };
        self.database.readers.with("cannot read a shard", |connection| {
            let found = connection
                .prepare_cached(
                    "SELECT id, start_key, end_key, resources, version, time, retired FROM shards \
                     WHERE set_id = ?1 AND id = ?2",
                )?
                .query_row([set.0, number], |row| shard(row, created))
                .optional()?;
            match found {
                Some(retired) if retired.retired => {
                    Ok(Some(sum_of_live(connection, set, retired, created)?))
                }
                other => Ok(other),
            }
        })
    }

    fn keep_versions(&self, set: SetId, keep: bool) -> Result<(), LogError> {
        self.call(Work::KeepVersions(set, keep)).map(drop)
    }

    fn collect_versions(
        &self,
        set: SetId,
        policy: &VersionPolicy,
        limit: usize,
    ) -> Result<Collected, LogError> {
        match self.call(Work::CollectVersions(set, *policy, limit))? {
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
        const OLDEST: &str = concat!(
            "SELECT ",
            version_columns!(),
            " FROM versions WHERE set_id = ?1 AND key = ?2 AND time >= ?3 ORDER BY time LIMIT ?4"
        );
        const NEWEST: &str = concat!(
            "SELECT ",
            version_columns!(),
            " FROM versions WHERE set_id = ?1 AND key = ?2 AND time <= ?3 ORDER BY time DESC LIMIT ?4"
        );
        let keeps = self.head(set)?.versions_since.is_some();
        let asked = (from, order, limit);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.database.readers.with("cannot read the versions of a resource", |connection| {
            // Versions can be older than a restarted log: imported resources count from the set's
            // creation.
            let created = connection
                .prepare_cached("SELECT created FROM sets WHERE id = ?1")?
                .query_row([set.0], |row| row.get(0).map(Timestamp::from_micros))?;
            let Some(from) = stored_from(from, order, created) else { return Ok(Vec::new()) };
            let mut statement = connection.prepare_cached(if order == Order::OldestFirst {
                OLDEST
            } else {
                NEWEST
            })?;
            let rows = statement
                .query_map(params![set.0, key, from.as_micros(), limit], |row| {
                    read_version(row, created)
                })?;
            let mut found = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            if keeps {
                let current = current_version(connection, set, key, created)?;
                add_current(&mut found, current, asked.0, asked.1, asked.2);
            }
            Ok(found)
        })
    }

    fn needs_content(&self, id: &ContentId) -> Result<bool, LogError> {
        self.database.readers.with("cannot read who needs kept contents", |connection| {
            connection
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM contents WHERE id = ?1 AND needed > 0)",
                )?
                .query_row([id.as_bytes()], |row| row.get(0))
        })
    }

    fn unneeded_contents(
        &self,
        after: Option<ContentId>,
        limit: usize,
    ) -> Result<Vec<ContentId>, LogError> {
        let after = after.as_ref().map_or(&[][..], |id| id.as_bytes());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.database.readers.with("cannot read which kept contents nobody needs", |connection| {
            let mut statement = connection
                .prepare_cached("SELECT DISTINCT id FROM contents WHERE needed = 0 AND id > ?1 ORDER BY id LIMIT ?2")?;
            let rows = statement.query_map(params![after, limit], |row| content(row, 0))?;
            rows.filter_map(Result::transpose).collect()
        })
    }

    fn forget_contents(&self, ids: Vec<ContentId>) -> Result<(), LogError> {
        self.call(Work::ForgetContents(ids)).map(drop)
    }

    fn pages(&self, set: SetId, first: u64, limit: usize) -> Result<Vec<Page>, LogError> {
        self.head(set)?;
        let (first, limit) =
            (i64::try_from(first).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
        self.database.readers.with("cannot read the pages", |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT number, after, last, from_time, until_time FROM pages \
                 WHERE set_id = ?1 AND number >= ?2 ORDER BY number LIMIT ?3",
            )?;
            let pages = statement.query_map(params![set.0, first, limit], |row| {
                Ok(Page {
                    number: row.get::<_, i64>(0)? as u64,
                    after: Position(row.get::<_, i64>(1)? as u64),
                    last: row.get::<_, Option<i64>>(2)?.map(|last| Position(last as u64)),
                    from: Timestamp::from_micros(row.get(3)?),
                    until: row.get::<_, Option<i64>>(4)?.map(Timestamp::from_micros),
                })
            })?;
            pages.collect()
        })
    }
}

fn shard(row: &Row<'_>, created: Timestamp) -> rusqlite::Result<Shard> {
    let version = Position(row.get::<_, i64>(4)? as u64);
    Ok(Shard {
        id: ShardId(row.get::<_, i64>(0)? as u64),
        range: KeyRange { start: row.get(1)?, end: row.get(2)? },
        resources: row.get::<_, i64>(3)? as u64,
        version,
        time: if version == Position(0) { created } else { Timestamp::from_micros(row.get(5)?) },
        retired: row.get(6)?,
    })
}

/// The sum of a retired shard: the live shards that start in its range cover this range exactly.
fn sum_of_live(
    connection: &Connection,
    set: SetId,
    retired: Shard,
    created: Timestamp,
) -> rusqlite::Result<Shard> {
    let (resources, version, time) = connection
        .prepare_cached(
            "SELECT sum(resources), max(version), max(time) FROM shards WHERE set_id = ?1 AND retired = 0 \
             AND start_key >= ?2 AND (?3 IS NULL OR start_key < ?3)",
        )?
        .query_row(params![set.0, retired.range.start, retired.range.end], |row| {
            Ok((row.get::<_, i64>(0)? as u64, Position(row.get::<_, i64>(1)? as u64), row.get(2)?))
        })?;
    let time = if version == Position(0) { created } else { Timestamp::from_micros(time) };
    Ok(Shard { resources, version, time, ..retired })
}

fn resource_of(
    connection: &Connection,
    set: SetId,
    key: &str,
) -> rusqlite::Result<Option<Resource>> {
    const SQL: &str =
        concat!("SELECT ", resource_columns!(), " FROM resources WHERE set_id = ?1 AND key = ?2");
    let mut statement = connection.prepare_cached(SQL)?;
    statement
        .query_row(params![set.0, key], |row| {
            let mut resource = Resource::default();
            read_resource(row, &mut resource).map(|()| resource)
        })
        .optional()
}

/// The present content of a resource as a version; `created` is the set's creation time.
fn current_version(
    connection: &Connection,
    set: SetId,
    key: &str,
    created: Timestamp,
) -> rusqlite::Result<Option<Version>> {
    let Some(resource) = resource_of(connection, set, key)? else { return Ok(None) };
    let time = if resource.position == Position(0) {
        Some(created)
    } else {
        connection
            .prepare_cached("SELECT time FROM changes WHERE set_id = ?1 AND position = ?2")?
            .query_row(params![set.0, resource.position.0 as i64], |row| {
                row.get(0).map(Timestamp::from_micros)
            })
            .optional()?
    };
    Ok(time.and_then(|time| current(&resource, time)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::connection::open_reader;
    use abreast_core::SystemClock;

    #[test]
    fn latest_changes_are_read_from_their_indexes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("source.db");
        let _log = SqliteLog::open(&path, Arc::new(SystemClock)).unwrap();
        let reader = open_reader(&path).unwrap();
        let mut explain = reader.prepare(&format!("EXPLAIN QUERY PLAN {LATEST}")).unwrap();
        let steps =
            explain.query_map(params![1, 0, 10, 10], |row| row.get::<_, String>(3)).unwrap();
        let plan = steps.map(|step| step.unwrap()).collect::<Vec<_>>().join("\n");
        for index in ["latest_changes", "latest_removals"] {
            let range = format!("COVERING INDEX {index} (set_id=? AND position>? AND position<?)");
            assert!(plan.contains(&range), "{plan}");
        }
        assert!(!plan.contains("SCAN resources") && !plan.contains("SCAN changes"), "{plan}");
    }

    #[test]
    fn a_temporary_log_is_deleted_with_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.sqlite");
        let options = SqliteOptions::default();
        let log = options.open_in(&path, Some(folder), Arc::new(SystemClock)).unwrap();
        assert!(path.exists());
        drop(log);
        assert!(!path.parent().unwrap().exists());
    }
}
