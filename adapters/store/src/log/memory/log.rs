//! A change log in memory, for tests. Except for durability, it gives the same guarantees as the
//! log on SQLite.

use crate::database::queue::Queue;
use crate::log::apply;
use crate::log::commit_signal::{CommitSignal, is_beyond};
use crate::log::limits::{
    check_batch, check_set, check_witnesses, import_is_complete, no_set, other_beginning,
    still_importing,
};
use crate::log::memory::tables::{MemorySet, MemoryTables};
use crate::log::set_rows::Tables;
use crate::log::set_state::SetState;
use crate::log::shards::{LiveShard, LiveShards};
use crate::log::versions::{self, add_current, stored_from};
use crate::log::work::{Job, Outcome, Reply, Work};
use abreast_core::{
    AppendDone, Change, ChangeLog, ChangeRecord, Clock, Collected, ContentId, ErrorKind, Head,
    Imported, KeyRange, LogError, NewSet, Order, Page, Position, Resource, ResourceSet, SetId,
    Shard, ShardId, ShardRule, Version, VersionPolicy, Visit, check_key, check_state,
};
use abreast_webtypes::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

type Sets = RwLock<Vec<MemorySet>>;

/// A change log in memory, for tests.
pub struct MemoryLog {
    queue: Arc<Queue<Job>>,
    sets: Arc<Sets>,
    commit_signal: Arc<CommitSignal>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLog").finish_non_exhaustive()
    }
}

impl MemoryLog {
    /// An empty store with shards of the default size.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_shard_rule(clock, ShardRule::DEFAULT)
    }

    /// An empty store that splits shards at other sizes than [`ShardRule::DEFAULT`].
    #[must_use]
    pub fn with_shard_rule(clock: Arc<dyn Clock>, rule: ShardRule) -> Self {
        let (queue, sets) = (Arc::new(Queue::default()), Arc::new(Sets::default()));
        let commit_signal = Arc::new(CommitSignal::default());
        let writer = MemoryWriter {
            queue: Arc::clone(&queue),
            sets: Arc::clone(&sets),
            commit_signal: Arc::clone(&commit_signal),
            clock,
            rule,
        };
        let thread = std::thread::spawn(move || writer.run());
        Self { queue, sets, commit_signal, thread: Mutex::new(Some(thread)) }
    }

    fn call(&self, work: Work) -> Result<Outcome, LogError> {
        let (sender, receiver) = sync_channel(1);
        self.queue.push(Job { work, reply: Reply::Call(sender) });
        receiver.recv().unwrap_or_else(|_| {
            Err(LogError::new(ErrorKind::Io, "the store stopped before it answered"))
        })
    }

    fn with<T>(&self, set: SetId, read: impl FnOnce(&MemorySet) -> T) -> Result<T, LogError> {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        place(set).and_then(|place| sets.get(place)).map(read).ok_or_else(|| no_set(set))
    }
}

impl Drop for MemoryLog {
    fn drop(&mut self) {
        self.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the store's writing thread panicked");
        }
    }
}

/// Index of a set; the set with the number 1 is the first.
fn place(set: SetId) -> Option<usize> {
    usize::try_from(set.0).ok()?.checked_sub(1)
}

struct MemoryWriter {
    queue: Arc<Queue<Job>>,
    sets: Arc<Sets>,
    commit_signal: Arc<CommitSignal>,
    clock: Arc<dyn Clock>,
    rule: ShardRule,
}

impl MemoryWriter {
    fn run(self) {
        loop {
            let group = self.queue.take();
            if group.is_empty() {
                return;
            }
            for job in group {
                let result = self.work(job.work);
                self.commit_signal.notify();
                job.reply.send(result);
            }
        }
    }

    fn work(&self, work: Work) -> Result<Outcome, LogError> {
        match work {
            Work::Refuse(error) => Err(error),
            Work::Append(set, changes) => self.with_set(set, |set_state, tables| {
                if set_state.takes_base() {
                    return Err(still_importing());
                }
                let Ok(appended) = apply::append(set_state, tables, &changes, self.clock.now());
                appended.map(Outcome::Appended)
            }),
            Work::OpenSet(set) => self.open_set(&set).map(Outcome::Set),
            Work::Import(set, resources) => self.with_set(set, |set_state, tables| {
                if !set_state.takes_base() {
                    return Err(import_is_complete());
                }
                let Ok(()) = apply::import(set_state, tables, &resources);
                Ok(Outcome::Done)
            }),
            Work::KeepVersions(set, keep) => self.with_set(set, |set_state, _| {
                versions::keep(set_state, keep);
                Ok(Outcome::Done)
            }),
            Work::CollectVersions(set, policy, limit) => self.with_set(set, |set_state, tables| {
                let Ok(collected) =
                    versions::collect(set_state, tables, &policy, self.clock.now(), limit);
                Ok(Outcome::Collected(collected))
            }),
            Work::ForgetContents(ids) => {
                let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
                for set in sets.iter_mut() {
                    set.tables.contents.retain(|id, (_, needed)| *needed > 0 || !ids.contains(id));
                }
                Ok(Outcome::Done)
            }
            Work::CompleteImport(set) => self.with_set(set, |set_state, _| {
                if set_state.importing {
                    set_state.complete_import(self.clock.now());
                }
                Ok(Outcome::Done)
            }),
            Work::RefreshWitnesses(set, witnesses) => self.with_set(set, |_, tables| {
                for (key, witness) in witnesses {
                    let Ok(()) = Tables::set_witness(tables, &key, &witness);
                }
                Ok(Outcome::Done)
            }),
        }
    }

    fn with_set(
        &self,
        set: SetId,
        task: impl FnOnce(&mut SetState, &mut MemoryTables) -> Result<Outcome, LogError>,
    ) -> Result<Outcome, LogError> {
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        let found = place(set).and_then(|place| sets.get_mut(place)).ok_or_else(|| no_set(set))?;
        task(&mut found.set_state, &mut found.tables)
    }

    fn open_set(&self, new: &NewSet) -> Result<ResourceSet, LogError> {
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        let place = sets.iter().position(|set| set.slug == new.slug).unwrap_or(sets.len());
        if let Some(known) = sets.get_mut(place) {
            if known.beginning != new.beginning {
                return Err(other_beginning(new));
            }
            known.set_state.rule = new.page_rule;
        } else {
            let set_state = SetState::new(self.clock.now(), new, LiveShards::first(self.rule));
            let (slug, tables) = (new.slug.clone(), MemoryTables::default());
            sets.push(MemorySet { slug, beginning: new.beginning, set_state, tables });
        }
        Ok(ResourceSet { id: SetId(place as i64 + 1), slug: new.slug.clone() })
    }
}

impl ChangeLog for MemoryLog {
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
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        let numbered = sets.iter().zip(1..);
        Ok(numbered
            .map(|(set, id)| ResourceSet { id: SetId(id), slug: set.slug.clone() })
            .collect())
    }

    fn head(&self, set: SetId) -> Result<Head, LogError> {
        self.with(set, |set| set.set_state.head())
    }

    fn known_head(&self, set: SetId) -> Option<Head> {
        self.head(set).ok()
    }

    fn wait_for(&self, known: &[(SetId, Position)], timeout: Duration) -> Result<bool, LogError> {
        self.commit_signal.wait_until(timeout, || is_beyond(self, known))
    }

    fn import(&self, set: SetId, resources: Vec<Imported>) -> Result<(), LogError> {
        for resource in &resources {
            check_key(&resource.key)?;
            check_state(&resource.key, &resource.state, &resource.witness)?;
        }
        self.call(Work::Import(set, resources)).map(drop)
    }

    fn complete_import(&self, set: SetId) -> Result<(), LogError> {
        self.call(Work::CompleteImport(set)).map(drop)
    }

    fn append_then(&self, set: SetId, changes: Vec<Change>, done: AppendDone) {
        let work = match check_batch(&changes) {
            Ok(()) => Work::Append(set, changes),
            Err(refused) => Work::Refuse(refused),
        };
        self.queue.push(Job { work, reply: Reply::Append(done) });
    }

    fn refresh_witnesses(
        &self,
        set: SetId,
        witnesses: Vec<(String, Vec<u8>)>,
    ) -> Result<(), LogError> {
        check_witnesses(&witnesses)?;
        self.call(Work::RefreshWitnesses(set, witnesses)).map(drop)
    }

    fn read(
        &self,
        set: SetId,
        after: Position,
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError> {
        let start = usize::try_from(after.0).unwrap_or(usize::MAX);
        let changes =
            self.with(set, |set| set.tables.changes.get(start..).unwrap_or_default().to_vec())?;
        let _ = changes.iter().try_for_each(|change| visit(change));
        Ok(())
    }

    fn latest(
        &self,
        set: SetId,
        after: Position,
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError> {
        let start = usize::try_from(after.0).unwrap_or(usize::MAX);
        let changes: Vec<_> = self.with(set, |set| {
            let changes = set.tables.changes.get(start..).unwrap_or_default();
            changes.iter().filter(|change| set.tables.is_latest(change)).map(Arc::clone).collect()
        })?;
        let _ = changes.iter().try_for_each(|change| visit(change));
        Ok(())
    }

    fn latest_before(&self, set: SetId, position: Position) -> Result<Option<Position>, LogError> {
        self.with(set, |set| {
            let changes = set.tables.changes.iter().rev();
            changes
                .filter(|change| change.position < position && set.tables.is_latest(change))
                .map(|change| change.position)
                .next()
        })
    }

    fn position_at(&self, set: SetId, time: Timestamp) -> Result<Position, LogError> {
        self.with(set, |set| {
            Position(set.tables.changes.partition_point(|change| change.time <= time) as u64)
        })
    }

    fn resource(&self, set: SetId, key: &str) -> Result<Option<Resource>, LogError> {
        self.with(set, |set| {
            set.tables.resources.get(key).map(|resource| Resource::clone(resource))
        })
    }

    fn scan(
        &self,
        set: SetId,
        range: &KeyRange,
        visit: Visit<'_, Resource>,
    ) -> Result<(), LogError> {
        let resources: Vec<_> = self.with(set, |set| {
            set.tables
                .range(&range.start, range.end.as_deref())
                .map(|(_, resource)| Arc::clone(resource))
                .collect()
        })?;
        let _ = resources.iter().try_for_each(|resource| visit(resource));
        Ok(())
    }

    fn shards(&self, set: SetId) -> Result<Vec<Shard>, LogError> {
        self.with(set, |set| {
            let live = &set.set_state.shards;
            live.list()
                .iter()
                .enumerate()
                .map(|(place, one)| shard(&set.set_state, one, live.end_of(place)))
                .collect()
        })
    }

    fn shard(&self, set: SetId, id: ShardId) -> Result<Option<Shard>, LogError> {
        let live = self.shards(set)?.into_iter().find(|shard| shard.id == id);
        if live.is_some() {
            return Ok(live);
        }
        self.with(set, |set| {
            let range = set.tables.retired.get(&id)?;
            let inside = |shard: &&LiveShard| {
                shard.start >= range.start
                    && range.end.as_ref().is_none_or(|end| shard.start < *end)
            };
            let parts = || set.set_state.shards.list().iter().filter(inside);
            let newest = parts().max_by_key(|shard| shard.version)?;
            Some(Shard {
                id,
                range: range.clone(),
                resources: parts().map(|shard| shard.resources).sum(),
                retired: true,
                ..shard(&set.set_state, newest, None)
            })
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
        self.with(set, |set| {
            let created = set.set_state.created;
            let asked = from;
            let Some(from) = stored_from(from, order, created) else { return Vec::new() };
            let none = BTreeMap::new();
            let versions = set.tables.versions.get(key).unwrap_or(&none);
            let listed = |(_, version): (_, &Version)| {
                let time = if version.position == Position(0) { created } else { version.time };
                Version { time, ..version.clone() }
            };
            let mut found: Vec<Version> = match order {
                Order::OldestFirst => versions.range(from..).take(limit).map(listed).collect(),
                Order::NewestFirst => {
                    versions.range(..=from).rev().take(limit).map(listed).collect()
                }
            };
            if set.set_state.head().versions_since.is_some() {
                let current = set.tables.current_version(key, created);
                add_current(&mut found, current, asked, order, limit);
            }
            found
        })
    }

    fn needs_content(&self, id: &ContentId) -> Result<bool, LogError> {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        Ok(sets
            .iter()
            .any(|set| set.tables.contents.get(id).is_some_and(|(_, needed)| *needed > 0)))
    }

    fn unneeded_contents(
        &self,
        after: Option<ContentId>,
        limit: usize,
    ) -> Result<Vec<ContentId>, LogError> {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        let unneeded = sets
            .iter()
            .flat_map(|set| set.tables.contents.iter().filter(|(_, (_, needed))| *needed == 0));
        let mut ids: Vec<_> = unneeded
            .map(|(id, _)| *id)
            .filter(|id| after.is_none_or(|after| *id > after))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids.truncate(limit);
        Ok(ids)
    }

    fn forget_contents(&self, ids: Vec<ContentId>) -> Result<(), LogError> {
        self.call(Work::ForgetContents(ids)).map(drop)
    }

    fn pages(&self, set: SetId, first: u64, limit: usize) -> Result<Vec<Page>, LogError> {
        self.with(set, |set| {
            let open = set.set_state.page.page();
            let all = set.tables.closed_pages.iter().copied().chain([open]);
            all.filter(|page| page.number >= first).take(limit).collect()
        })
    }
}

fn shard(set_state: &SetState, live: &LiveShard, end: Option<&str>) -> Shard {
    Shard {
        id: live.id,
        range: KeyRange { start: live.start.clone(), end: end.map(str::to_owned) },
        resources: live.resources,
        version: live.version,
        time: if live.version == Position(0) { set_state.created } else { live.time },
        retired: false,
    }
}
