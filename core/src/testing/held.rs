//! A log whose reading a test can hold up.

use crate::{
    AppendDone, Change, ChangeLog, ChangeRecord, Head, Imported, KeyRange, LogError, NewSet, Page,
    Position, Resource, ResourceSet, SetId, Shard, ShardId, Visit,
};
use abreast_webtypes::Timestamp;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A log that makes the readers of one of its sets wait, and counts how its resources and shards
/// are read.
pub struct HeldLog {
    log: Arc<dyn ChangeLog>,
    held: Mutex<Option<SetId>>,
    holds_heads: AtomicBool,
    waiting: AtomicUsize,
    let_on: Condvar,
    scans: AtomicUsize,
    shard_reads: AtomicUsize,
}

impl HeldLog {
    /// That log; nobody waits.
    pub fn new(log: Arc<dyn ChangeLog>) -> Self {
        let [waiting, scans, shard_reads] = [0; 3].map(AtomicUsize::new);
        Self {
            log,
            held: Mutex::default(),
            holds_heads: AtomicBool::new(false),
            waiting,
            let_on: Condvar::new(),
            scans,
            shard_reads,
        }
    }

    /// From now on scans of this set wait, or none.
    pub fn hold(&self, set: Option<SetId>) {
        *self.held() = set;
        self.let_on.notify_all();
    }

    /// From now on no head is known without asking the log, and requests for the head of the held
    /// set wait.
    pub fn hold_heads(&self) {
        self.holds_heads.store(true, Ordering::SeqCst);
    }

    /// How many readers wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// How many scans were begun.
    pub fn scans(&self) -> usize {
        self.scans.load(Ordering::SeqCst)
    }

    /// How often a shard was read.
    pub fn shard_reads(&self) -> usize {
        self.shard_reads.load(Ordering::SeqCst)
    }

    fn wait(&self, set: SetId) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let held = self.let_on.wait_while(self.held(), |held| *held == Some(set));
        drop(held.unwrap_or_else(PoisonError::into_inner));
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    fn held(&self) -> MutexGuard<'_, Option<SetId>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeLog for HeldLog {
    fn open_set(&self, set: &NewSet) -> Result<ResourceSet, LogError> {
        self.log.open_set(set)
    }

    fn sets(&self) -> Result<Vec<ResourceSet>, LogError> {
        self.log.sets()
    }

    fn idempotency_key(&self, set: SetId, prefix: &str) -> Result<Option<String>, LogError> {
        self.log.idempotency_key(set, prefix)
    }

    fn head(&self, set: SetId) -> Result<Head, LogError> {
        if self.holds_heads.load(Ordering::SeqCst) {
            self.wait(set);
        }
        self.log.head(set)
    }

    fn known_head(&self, set: SetId) -> Option<Head> {
        if self.holds_heads.load(Ordering::SeqCst) { None } else { self.log.known_head(set) }
    }

    fn import(&self, set: SetId, resources: Vec<Imported>) -> Result<(), LogError> {
        self.log.import(set, resources)
    }

    fn complete_import(&self, set: SetId) -> Result<(), LogError> {
        self.log.complete_import(set)
    }

    fn append_then(&self, set: SetId, changes: Vec<Change>, done: AppendDone) {
        self.log.append_then(set, changes, done);
    }

    fn refresh_witnesses(
        &self,
        set: SetId,
        witnesses: Vec<(String, Vec<u8>)>,
    ) -> Result<(), LogError> {
        self.log.refresh_witnesses(set, witnesses)
    }

    fn read(
        &self,
        set: SetId,
        after: Position,
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError> {
        self.log.read(set, after, visit)
    }

    fn latest(
        &self,
        set: SetId,
        after: Position,
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError> {
        self.log.latest(set, after, visit)
    }

    fn latest_before(&self, set: SetId, position: Position) -> Result<Option<Position>, LogError> {
        self.log.latest_before(set, position)
    }

    fn position_at(&self, set: SetId, time: Timestamp) -> Result<Position, LogError> {
        self.log.position_at(set, time)
    }

    fn resource(&self, set: SetId, key: &str) -> Result<Option<Resource>, LogError> {
        self.log.resource(set, key)
    }

    fn scan(
        &self,
        set: SetId,
        range: &KeyRange,
        visit: Visit<'_, Resource>,
    ) -> Result<(), LogError> {
        self.scans.fetch_add(1, Ordering::SeqCst);
        self.wait(set);
        self.log.scan(set, range, visit)
    }

    fn shards(&self, set: SetId) -> Result<Vec<Shard>, LogError> {
        self.log.shards(set)
    }

    fn shard(&self, set: SetId, id: ShardId) -> Result<Option<Shard>, LogError> {
        self.shard_reads.fetch_add(1, Ordering::SeqCst);
        self.log.shard(set, id)
    }

    fn pages(&self, set: SetId, first: u64, limit: usize) -> Result<Vec<Page>, LogError> {
        self.log.pages(set, first, limit)
    }
}
