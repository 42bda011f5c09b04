//! A store that several hubs of one process share, each as if it were the only one in its process.

use abreast_core::hub::{
    Attempt, ChangedTarget, DeadLetter, Done, EndedTarget, Ending, HubChanges, HubNodes,
    HubRevision, HubShard, HubStore, HubSummary, Membership, NewTarget, NewVerification, Progress,
    Settled, Sizes, Target, TargetId, TargetKind, Topic, Verification, VerificationId,
};
use abreast_core::{
    ErrorKind, LogError, NewNotification, Notification, Offset, PublishDone, TopicId, TopicLog,
};
use abreast_store::hub::SqliteHub;
use abreast_webtypes::Timestamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Shards that nodes can have, so that the numbers of few targets and verifications are in all of
/// these. Larger numbers belong to no node.
pub(crate) const SHARDS: usize = 16;
/// Changes that a node gets at once.
const PAGE: usize = 5;

/// The data of all nodes.
pub(crate) struct Shared {
    hub: Arc<SqliteHub>,
    lease: Duration,
    /// A revision is the number of changes, with the stamp of the last one.
    changes: Mutex<Vec<(Change, u64)>>,
    stamps: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The ends of valid leases.
    leases: BTreeMap<usize, Instant>,
    owners: BTreeMap<HubShard, usize>,
    /// Targets whose progress was recorded, with the node.
    recorded: Vec<(usize, TargetId)>,
}

#[derive(Clone, Copy)]
enum Change {
    Topic(TopicId),
    Target(TargetId, bool),
    Ended(TargetId),
    Verification(VerificationId),
}

/// The store as one node sees it.
pub(crate) struct SharedHub {
    shared: Arc<Shared>,
    node: usize,
    /// Whether renewals and records of progress fail. Everything else works, so that the node could
    /// still deliver.
    is_cut: AtomicBool,
    /// How late the answers to renewals, and to reads of notifications, arrive.
    delay: Mutex<Duration>,
    delay_of_reads: Mutex<Duration>,
    /// How long a shard is loaded after its targets were read.
    delay_of_loads: Mutex<Duration>,
}

impl Shared {
    pub(crate) fn new(hub: Arc<SqliteHub>, lease: Duration) -> Arc<Self> {
        Arc::new(Self {
            hub,
            lease,
            changes: Mutex::default(),
            stamps: AtomicU64::new(1),
            state: Mutex::default(),
        })
    }

    pub(crate) fn node(self: &Arc<Self>, node: usize) -> Arc<SharedHub> {
        Arc::new(SharedHub {
            shared: Arc::clone(self),
            node,
            is_cut: AtomicBool::new(false),
            delay: Mutex::default(),
            delay_of_reads: Mutex::default(),
            delay_of_loads: Mutex::default(),
        })
    }

    pub(crate) fn hub(&self) -> &Arc<SqliteHub> {
        &self.hub
    }

    /// Number of shards of a node.
    pub(crate) fn shards_of(&self, node: usize) -> usize {
        self.lock().owners.values().filter(|owner| **owner == node).count()
    }

    /// The node that delivers to a target.
    pub(crate) fn owner(&self, id: TargetId) -> Option<usize> {
        self.lock().owners.get(&HubShard::of_target(id)).copied()
    }

    /// How often a node recorded the progress of a target.
    pub(crate) fn recorded(&self, node: usize, id: TargetId) -> usize {
        self.lock().recorded.iter().filter(|one| **one == (node, id)).count()
    }

    /// As after a failover to a database that did not get the last changes.
    pub(crate) fn lose_changes(&self) {
        self.changes.lock().unwrap().clear();
    }

    /// As [`Self::lose_changes`], after which others recorded as many changes of a topic and more, before
    /// any node asked.
    pub(crate) fn replace_changes(&self, topic: TopicId) {
        let mut changes = self.changes.lock().unwrap();
        let count = changes.len() + 3 * PAGE;
        *changes = (0..count).map(|_| (Change::Topic(topic), self.stamp())).collect();
    }

    fn stamp(&self) -> u64 {
        self.stamps.fetch_add(1, SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap();
        let now = Instant::now();
        state.leases.retain(|_, end| *end > now);
        let State { leases, owners, .. } = &mut *state;
        owners.retain(|_, owner| leases.contains_key(owner));
        state
    }

    fn note(&self, change: Change) {
        self.changes.lock().unwrap().push((change, self.stamp()));
    }
}

impl SharedHub {
    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, SeqCst);
    }

    pub(crate) fn delay(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    pub(crate) fn delay_reads(&self, delay: Duration) {
        *self.delay_of_reads.lock().unwrap() = delay;
    }

    pub(crate) fn delay_loads(&self, delay: Duration) {
        *self.delay_of_loads.lock().unwrap() = delay;
    }

    fn connected(&self) -> Result<(), LogError> {
        if self.is_cut.load(SeqCst) {
            return Err(LogError::new(ErrorKind::Unavailable, "the database cannot be reached"));
        }
        Ok(())
    }

    fn renew_now(&self) -> Membership {
        let mut state = self.shared.lock();
        state.leases.insert(self.node, Instant::now() + self.shared.lease);
        let nodes = state.leases.len();
        let fair = SHARDS.div_ceil(nodes);
        let mut count = state.owners.values().filter(|owner| **owner == self.node).count();
        for shard in (0..SHARDS as u16).map(HubShard) {
            if count < fair && !state.owners.contains_key(&shard) {
                state.owners.insert(shard, self.node);
                count += 1;
            }
        }
        let mine = state.owners.iter().filter(|(_, owner)| **owner == self.node);
        Membership {
            shards: mine.map(|(shard, _)| *shard).collect(),
            surplus: count.saturating_sub(fair),
            missing: 0,
            nodes,
            lease: self.shared.lease,
        }
    }

    /// Calls `done`, after the change is noted if there was one.
    fn noting<T: 'static>(
        &self,
        change: impl FnOnce(&T) -> Option<Change> + Send + 'static,
        done: Done<T>,
    ) -> Done<T> {
        let shared = Arc::clone(&self.shared);
        Box::new(move |result| {
            if let Some(change) = result.as_ref().ok().and_then(change) {
                shared.note(change);
            }
            done(result);
        })
    }
}

/// The revision after this many changes.
fn revision(changes: &[(Change, u64)], count: usize) -> HubRevision {
    let stamp = count.checked_sub(1).map_or(0, |last| changes[last].1);
    HubRevision { number: count as u64, stamp }
}

impl HubNodes for SharedHub {
    fn renew(&self) -> Result<Membership, LogError> {
        self.connected()?;
        let membership = self.renew_now();
        let delay = *self.delay.lock().unwrap();
        std::thread::sleep(delay);
        Ok(membership)
    }

    fn give_back(&self, shards: &[HubShard]) -> Result<(), LogError> {
        self.connected()?;
        let mut state = self.shared.lock();
        state.owners.retain(|shard, owner| *owner != self.node || !shards.contains(shard));
        Ok(())
    }
    fn leave(&self) -> Result<(), LogError> {
        self.connected()?;
        self.shared.lock().leases.remove(&self.node);
        Ok(())
    }

    fn revision(&self) -> Result<HubRevision, LogError> {
        let changes = self.shared.changes.lock().unwrap();
        Ok(revision(&changes, changes.len()))
    }

    fn changes_after(
        &self,
        known: HubRevision,
        shards: &[HubShard],
    ) -> Result<Option<HubChanges>, LogError> {
        let (page, revision) = {
            let changes = self.shared.changes.lock().unwrap();
            let number = known.number as usize;
            if number > changes.len() || revision(&changes, number) != known {
                return Ok(None);
            }
            let end = changes.len().min(number + PAGE);
            let page: Vec<_> = changes[number..end].iter().map(|(change, _)| *change).collect();
            (page, revision(&changes, end))
        };
        let mut changes = HubChanges { revision, ..HubChanges::default() };
        let hub = &self.shared.hub;
        for change in page {
            match change {
                Change::Topic(id) => {
                    let topic = hub.topic(id)?.unwrap();
                    changes.topics.push((id, topic.url, topic.head));
                }
                Change::Target(id, replayed) if shards.contains(&HubShard::of_target(id)) => {
                    let target = hub.target(id)?;
                    let changed = target.map(|target| ChangedTarget { target, replayed });
                    changes.targets.extend(changed);
                }
                Change::Ended(id) => changes.ended.push(id),
                Change::Verification(id) if shards.contains(&HubShard::of_verification(id)) => {
                    changes.verifications.extend(hub.verification(id)?);
                }
                Change::Target(..) | Change::Verification(_) => {}
            }
        }
        Ok(Some(changes))
    }

    fn start_again(&self) {}

    fn targets_in(
        &self,
        shard: HubShard,
        after: TargetId,
        limit: usize,
    ) -> Result<Vec<Target>, LogError> {
        let mut targets = self.shared.hub.all_targets(after, 10_000)?;
        targets.retain(|target| HubShard::of_target(target.id) == shard);
        targets.truncate(limit);
        Ok(targets)
    }

    fn verifications_in(
        &self,
        shard: HubShard,
        after: VerificationId,
        limit: usize,
    ) -> Result<Vec<Verification>, LogError> {
        std::thread::sleep(*self.delay_of_loads.lock().unwrap());
        let mut found = self.shared.hub.verifications(after, 10_000)?;
        found.retain(|verification| HubShard::of_verification(verification.id) == shard);
        found.truncate(limit);
        Ok(found)
    }
}

impl HubStore for SharedHub {
    fn nodes(&self) -> Option<&dyn HubNodes> {
        Some(self)
    }

    fn check_available(&self) -> Result<(), LogError> {
        self.connected()
    }

    fn find_topic(&self, url: &str) -> Result<Option<TopicId>, LogError> {
        self.shared.hub.find_topic(url)
    }

    fn topic(&self, id: TopicId) -> Result<Option<Topic>, LogError> {
        self.shared.hub.topic(id)
    }

    fn topics(&self, after: TopicId, limit: usize) -> Result<Vec<Topic>, LogError> {
        self.shared.hub.topics(after, limit)
    }

    fn accepted_before(&self, topic: TopicId, time: Timestamp) -> Result<Offset, LogError> {
        self.shared.hub.accepted_before(topic, time)
    }

    fn put_target_then(&self, new: NewTarget, done: Done<Target>) {
        let done = self.noting(|target: &Target| Some(Change::Target(target.id, false)), done);
        self.shared.hub.put_target_then(new, done);
    }

    fn end_target_then(&self, id: TargetId, why: Ending, done: Done<bool>) {
        let done = self.noting(move |ended| ended.then_some(Change::Ended(id)), done);
        self.shared.hub.end_target_then(id, why, done);
    }

    fn save_progress_then(&self, progress: Vec<Progress>, done: Done<Vec<TargetId>>) {
        if let Err(error) = self.connected() {
            return done(Err(error));
        }
        let mut state = self.shared.lock();
        let is_own =
            |one: &Progress| state.owners.get(&HubShard::of_target(one.id)) == Some(&self.node);
        let (own, foreign): (Vec<_>, Vec<_>) = progress.into_iter().partition(is_own);
        state.recorded.extend(own.iter().map(|one| (self.node, one.id)));
        // As in one transaction, no other node gets the shard meanwhile.
        let (sender, receiver) = std::sync::mpsc::channel();
        self.shared.hub.save_progress_then(own, Box::new(move |result| drop(sender.send(result))));
        let saved = receiver.recv().unwrap();
        drop(state);
        done(saved.map(|mut refused| {
            refused.extend(foreign.iter().map(|one| one.id));
            refused
        }));
    }

    fn replay(&self, id: TargetId, to: Offset) -> Result<Option<Target>, LogError> {
        let target = self.shared.hub.replay(id, to)?;
        if target.is_some() {
            self.shared.note(Change::Target(id, true));
        }
        Ok(target)
    }

    fn target(&self, id: TargetId) -> Result<Option<Target>, LogError> {
        self.shared.hub.target(id)
    }

    fn find_target(
        &self,
        topic: TopicId,
        address: &str,
        kind: TargetKind,
    ) -> Result<Option<Target>, LogError> {
        self.shared.hub.find_target(topic, address, kind)
    }

    fn targets_of(
        &self,
        topic: TopicId,
        after: TargetId,
        limit: usize,
    ) -> Result<Vec<Target>, LogError> {
        self.shared.hub.targets_of(topic, after, limit)
    }

    fn all_targets(&self, after: TargetId, limit: usize) -> Result<Vec<Target>, LogError> {
        self.shared.hub.all_targets(after, limit)
    }

    fn leases_over(&self, now: Timestamp, limit: usize) -> Result<Vec<TargetId>, LogError> {
        self.shared.hub.leases_over(now, limit)
    }

    fn attempts(&self, id: TargetId) -> Result<Vec<Attempt>, LogError> {
        self.shared.hub.attempts(id)
    }

    fn dead_letters(
        &self,
        id: TargetId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, LogError> {
        self.shared.hub.dead_letters(id, after, limit)
    }

    fn ended_targets(&self, before: i64, limit: usize) -> Result<Vec<EndedTarget>, LogError> {
        self.shared.hub.ended_targets(before, limit)
    }

    fn put_verification_then(&self, new: NewVerification, done: Done<VerificationId>) {
        let done = self.noting(|id| Some(Change::Verification(*id)), done);
        self.shared.hub.put_verification_then(new, done);
    }

    fn verification(&self, id: VerificationId) -> Result<Option<Verification>, LogError> {
        self.shared.hub.verification(id)
    }

    fn verifications(
        &self,
        after: VerificationId,
        limit: usize,
    ) -> Result<Vec<Verification>, LogError> {
        self.shared.hub.verifications(after, limit)
    }

    fn retry_verification_then(
        &self,
        id: VerificationId,
        attempts: u32,
        next_at: Timestamp,
        done: Done<()>,
    ) {
        self.shared.hub.retry_verification_then(id, attempts, next_at, done);
    }

    fn finish_verification_then(
        &self,
        id: VerificationId,
        settled: Settled,
        done: Done<Option<Target>>,
    ) {
        let is_end = settled == Settled::Unsubscribed;
        let change = move |target: &Option<Target>| {
            let id = target.as_ref()?.id;
            Some(if is_end { Change::Ended(id) } else { Change::Target(id, false) })
        };
        self.shared.hub.finish_verification_then(id, settled, self.noting(change, done));
    }

    fn summary(&self, since: Timestamp) -> Result<HubSummary, LogError> {
        self.shared.hub.summary(since)
    }

    fn sizes(&self) -> Result<Sizes, LogError> {
        self.shared.hub.sizes()
    }
}

impl TopicLog for SharedHub {
    fn open_topic(&self, url: &str) -> Result<TopicId, LogError> {
        let topic = self.shared.hub.open_topic(url)?;
        self.shared.note(Change::Topic(topic));
        Ok(topic)
    }

    fn publish_then(&self, topic: TopicId, notification: NewNotification, done: PublishDone) {
        let done = self.noting(move |_: &Offset| Some(Change::Topic(topic)), done);
        self.shared.hub.publish_then(topic, notification, done);
    }

    fn head(&self, topic: TopicId) -> Result<Offset, LogError> {
        self.shared.hub.head(topic)
    }

    fn read(
        &self,
        topic: TopicId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<Notification>, LogError> {
        let found = self.shared.hub.read(topic, after, limit);
        let delay = *self.delay_of_reads.lock().unwrap();
        std::thread::sleep(delay);
        found
    }

    fn trim(&self, topic: TopicId, up_to: Offset) -> Result<(), LogError> {
        self.shared.hub.trim(topic, up_to)
    }
}
