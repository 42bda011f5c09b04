//! The delivery engine. The store has one number for a target, its cursor in the topic's log;
//! deliveries in progress are in memory.
//!
//! A target gets one request at a time, so its notifications arrive in order. A few tasks
//! (`run.rs`) process the exchanges that the lanes return; targets that are up to date cause no
//! work.

mod changed_topics;
pub(crate) mod failing;
pub(crate) mod held;
pub(crate) mod lanes;
#[cfg(feature = "xmpp")]
mod nodes;
pub(crate) mod options;
mod outcome;
pub(crate) mod pace;
pub(crate) mod payloads;
#[cfg(feature = "xmpp")]
mod preparation;
mod progress;
mod run;
mod shards;
pub(crate) mod table;
mod webhook_attempt;
pub(crate) mod webhooks;
pub(crate) mod worker;

use crate::deliver::failing::FailingHub;
use crate::deliver::options::HubOptions;
use crate::message::metrics::Counters;
use crate::message::outage::Outage;
use abreast_core::hub::{Ending, HubStore, Target, TargetId, TargetKind};
use abreast_core::{Clock, LogError, Offset, TopicId};
use abreast_net::Sender;
use abreast_webtypes::Timestamp;
use held::HeldShards;
use lanes::{Lanes, Load};
use payloads::PayloadCache;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use table::{Entry, FailureState, Table, TargetActivity, TargetIndex, TopicEntry, host_of};
use tokio::sync::{Notify, watch};

/// Targets read from the store at once.
const PAGE: usize = 1_000;
/// Pause before it is checked again whether progress is recorded.
const SAVING_PAUSE: Duration = Duration::from_millis(20);
/// Ended targets that are remembered, because an earlier read of the store may still add them.
const FORGOTTEN: usize = 256;

/// The engine of deliveries.
pub(crate) struct Engine {
    pub(crate) options: Arc<HubOptions>,
    pub(crate) store: Arc<dyn HubStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cache: Arc<PayloadCache>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) held: HeldShards,
    sender: Sender,
    #[cfg(feature = "xmpp")]
    nodes: Option<nodes::Nodes>,
    pub(crate) webhooks: Arc<webhooks::WebhookState>,
    state: Mutex<State>,
    /// Topics with new notifications, with the offset of one, if it is known.
    changed_topics: Mutex<Vec<(TopicId, Option<Offset>)>>,
    wake: Notify,
    stopping: AtomicBool,
    /// Locked while ended targets are passed to the store, so that a renewal is either before or
    /// after this.
    parting: Mutex<()>,
}

struct State {
    table: Table,
    lanes: Lanes<(TargetIndex, u32)>,
    urls: HashMap<Arc<str>, TopicId>,
    listeners: HashMap<TopicId, watch::Sender<u64>>,
    save_at: Option<Instant>,
    saving: bool,
    /// Start of the first attempt since when the store has recorded no progress.
    unsaved_since: Option<Instant>,
    /// Failures to record progress.
    unsaved: Outage,
    /// Time at which [`Engine::run`] wakes up by itself.
    armed: Option<Instant>,
    /// Targets that ended here, and whose end the store has not recorded yet.
    ending: Vec<PendingEnd>,
    /// Subscriptions that the store is creating or renewing: these must not end meanwhile.
    settling: Vec<(TopicId, String)>,
    /// Targets that end after the delivery of the last notification.
    last_words: HashSet<TargetId>,
    /// The last targets whose end the store recorded first.
    forgotten: VecDeque<TargetId>,
}

/// A target that ended, before the store has recorded this.
struct PendingEnd {
    id: TargetId,
    topic: TopicId,
    address: Box<str>,
    why: Ending,
}

/// Numbers of targets, topics and deliveries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EngineStatus {
    pub(crate) targets: usize,
    pub(crate) topics: usize,
    pub(crate) load: Load,
    pub(crate) waiting: usize,
    pub(crate) failing_hubs: usize,
}

impl Engine {
    pub(crate) fn new(
        options: Arc<HubOptions>,
        store: Arc<dyn HubStore>,
        clock: Arc<dyn Clock>,
        cache: Arc<PayloadCache>,
        counters: Arc<Counters>,
        sender: Sender,
    ) -> Result<Arc<Self>, LogError> {
        let state = State {
            table: Table::default(),
            lanes: Lanes::new(options.lanes.clone()),
            urls: HashMap::new(),
            listeners: HashMap::new(),
            save_at: None,
            saving: false,
            unsaved_since: None,
            unsaved: Outage::default(),
            armed: None,
            ending: Vec::new(),
            settling: Vec::new(),
            last_words: HashSet::new(),
            forgotten: VecDeque::new(),
        };
        let engine = Self {
            #[cfg(feature = "xmpp")]
            nodes: options.xmpp.clone().map(nodes::Nodes::new),
            held: HeldShards::new(store.nodes().is_some()),
            options,
            store,
            clock,
            cache,
            counters,
            sender,
            webhooks: Arc::default(),
            state: Mutex::new(state),
            changed_topics: Mutex::default(),
            wake: Notify::new(),
            stopping: AtomicBool::new(false),
            parting: Mutex::default(),
        };
        engine.load()?;
        Ok(Arc::new(engine))
    }

    /// Reads all topics from the store, and all targets, unless several nodes divide these.
    fn load(&self) -> Result<(), LogError> {
        self.load_topics()?;
        if self.held.is_shared() {
            return Ok(());
        }
        let mut state = self.lock();
        let mut after = TargetId(0);
        loop {
            let page = self.store.all_targets(after, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.id;
            for target in page {
                if let Some(place) = state.table.put(target) {
                    self.begin(&mut state, place);
                }
            }
        }
    }

    /// Reads all topics from the store. Blocks.
    pub(crate) fn load_topics(&self) -> Result<(), LogError> {
        let mut after = TopicId(0);
        loop {
            let page = self.store.topics(after, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.id;
            let mut state = self.lock();
            for topic in page {
                state.add_topic(topic.id, &topic.url, topic.head);
            }
        }
    }

    /// Forgets all targets and topics, and reads the topics again: the store has lost changes, so
    /// offsets and numbers in memory may have another meaning now. Progress that is being recorded is
    /// refused by the store, so this waits for the refusal. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn start_again(&self) -> Result<(), LogError> {
        let own: Vec<Arc<str>> = {
            let mut state = self.lock();
            while state.saving {
                drop(state);
                std::thread::sleep(SAVING_PAUSE);
                state = self.lock();
            }
            if let Some(nodes) = self.store.nodes() {
                nodes.start_again();
            }
            state.lanes.abort(|_| true);
            for place in state.table.places() {
                state.table.remove(place);
            }
            state.table.drop_progress(|_| true);
            let topics = std::mem::take(&mut state.table.topics);
            state.urls.clear();
            state.listeners.clear();
            state.forgotten.clear();
            topics.into_values().filter(|topic| topic.own).map(|topic| topic.url).collect()
        };
        self.changed_topics.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.cache.clear();
        self.load_topics()?;
        own.iter().try_for_each(|url| self.open_topic(url, true).map(drop))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The topic with this URL, if it is known. Reads memory only.
    pub(crate) fn topic(&self, url: &str) -> Option<TopicId> {
        self.lock().urls.get(url).copied()
    }

    /// The URL of a topic.
    pub(crate) fn url(&self, topic: TopicId) -> Option<Arc<str>> {
        self.lock().table.topics.get(&topic).map(|topic| Arc::clone(&topic.url))
    }

    /// Whether the topic is published by a part of this process.
    pub(crate) fn is_own(&self, topic: TopicId) -> bool {
        self.lock().table.topics.get(&topic).is_some_and(|topic| topic.own)
    }

    /// The topic with this URL, created if it does not exist. Blocks.
    pub(crate) fn open_topic(&self, url: &str, own: bool) -> Result<TopicId, LogError> {
        let known = self.topic(url);
        let topic = match known {
            Some(topic) => topic,
            None => self.store.open_topic(url)?,
        };
        let head = self.store.head(topic)?;
        let mut state = self.lock();
        state.add_topic(topic, url, head);
        if own && let Some(entry) = state.table.topics.get_mut(&topic) {
            entry.own = true;
        }
        Ok(topic)
    }

    /// Returns a channel that reports new notifications in a topic's log.
    pub(crate) fn listen(&self, topic: TopicId) -> watch::Receiver<u64> {
        let mut state = self.lock();
        let head = state.table.topics.get(&topic).map_or(0, |topic| topic.head.0);
        state.listeners.retain(|_, sender| sender.receiver_count() > 0);
        state.listeners.entry(topic).or_insert_with(|| watch::Sender::new(head)).subscribe()
    }

    /// Adds or renews a target, unless another node delivers to it.
    pub(crate) fn put(&self, target: Target) {
        if !self.held.has_loaded(target.id) {
            return;
        }
        let mut state = self.lock();
        // The target may have ended since the store created it.
        if state.forgotten.contains(&target.id) {
            return;
        }
        state.ending.retain(|parting| parting.id != target.id);
        if let Some(place) = state.table.put(target)
            && state.table.get(place).is_some_and(|entry| entry.doing == TargetActivity::Idle)
        {
            self.begin(&mut state, place);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Updates a cursor that an operator has set.
    pub(crate) fn moved(&self, target: &Target) {
        let mut state = self.lock();
        let Some(place) = state.table.place(target.id) else { return };
        if state.table.get(place).is_some_and(|entry| entry.generation > target.generation) {
            return;
        }
        state.table.renew_epoch(place);
        if let Some(entry) = state.table.get_mut(place) {
            entry.secret = target.secret.as_ref().map(|secret| secret.0.clone());
            entry.lease_until = target.lease_until;
            entry.cursor = target.cursor;
            entry.generation = target.generation;
            entry.trouble = None;
            entry.news = None;
            entry.doing = TargetActivity::Idle;
        }
        self.begin(&mut state, place);
        drop(state);
        self.wake.notify_one();
    }

    /// Ends the pause before the next attempt to deliver to a target. A delivery that runs, or that
    /// waits for a place, continues.
    pub(crate) fn attempt_now(&self, id: TargetId) {
        let mut state = self.lock();
        let Some(place) = state.table.place(id) else { return };
        let waits =
            state.table.get(place).is_some_and(|entry| entry.doing == TargetActivity::Waiting);
        if waits {
            // The planned attempt must not follow.
            state.table.renew_epoch(place);
            let entry = state.table.get_mut(place);
            if let Some(trouble) = entry.and_then(|entry| entry.trouble.as_mut()) {
                trouble.next_at = None;
            }
            self.begin(&mut state, place);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Removes a target whose end the store has recorded.
    pub(crate) fn forget(&self, id: TargetId) {
        if !self.held.has_loaded(id) {
            return;
        }
        let mut state = self.lock();
        if state.forgotten.len() >= FORGOTTEN {
            state.forgotten.pop_front();
        }
        state.forgotten.push_back(id);
        if let Some(place) = state.table.place(id) {
            state.table.remove(place);
        }
    }

    /// Reports that the store is about to create or renew a subscription: until
    /// [`Engine::settled`], it does not end here, so that a renewal just before the end of the
    /// lease takes effect.
    pub(crate) fn settling(&self, topic: TopicId, callback: &str) {
        let _parting = self.parting.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock().settling.push((topic, callback.to_owned()));
    }

    pub(crate) fn settled(&self, topic: TopicId, callback: &str) {
        let mut state = self.lock();
        if let Some(at) =
            state.settling.iter().position(|(one, address)| *one == topic && address == callback)
        {
            state.settling.swap_remove(at);
        }
    }

    /// Whether the lease of a target is over. A subscription without a lease is valid while its
    /// callback is listed in the options.
    fn is_over(&self, entry: &Entry, now: Timestamp) -> bool {
        match entry.lease_until {
            Some(until) => until <= now,
            None => entry.kind == TargetKind::Subscription && !self.options.trusts(&entry.address),
        }
    }

    /// Ends targets whose lease is over.
    pub(crate) fn end_leases(&self) {
        let now = self.now();
        let mut state = self.lock();
        for place in state.table.places() {
            if state.table.get(place).is_some_and(|entry| {
                self.is_over(entry, now)
                    && !state.is_settling(entry.topic, &entry.address)
                    && self.held.may_deliver(entry.id)
            }) {
                self.end(&mut state, place, Ending::LeaseOver);
            }
        }
        drop(state);
        self.wake.notify_one();
    }

    /// The smallest cursor of a topic's targets; `None` without targets.
    pub(crate) fn slowest(&self, topic: TopicId) -> Option<Offset> {
        let state = self.lock();
        let members = &state.table.topics.get(&topic)?.members;
        members.iter().filter_map(|place| state.table.get(*place)).map(|entry| entry.cursor).min()
    }

    /// Number of targets in the table.
    pub(crate) fn len(&self) -> usize {
        self.lock().table.len()
    }

    pub(crate) fn subscriptions_on_host_of(&self, callback: &str) -> u32 {
        self.lock().table.subscriptions_on_host_of(callback)
    }

    #[cfg(feature = "xmpp")]
    pub(crate) fn has(&self, id: TargetId) -> bool {
        self.lock().table.place(id).is_some()
    }

    /// Updates a target with its present progress, which may be newer than the store's. Failures
    /// while no notification waits (of preparing a node) are recorded here only.
    pub(crate) fn update(&self, target: &mut Target) {
        let state = self.lock();
        let Some(place) = state.table.place(target.id) else { return };
        if let Some(entry) = state.table.get(place) {
            target.cursor = entry.cursor;
        }
        if let Some((_, trouble)) = state.trouble(place) {
            target.attempts = target.attempts.max(trouble.failures);
            target.first_failed = target.first_failed.or(trouble.first_failed);
        }
    }

    pub(crate) fn standing(&self) -> EngineStatus {
        let state = self.lock();
        EngineStatus {
            targets: state.table.len(),
            topics: state.table.topics.len(),
            load: state.lanes.load(),
            waiting: state.lanes.retries.len(),
            failing_hubs: state
                .table
                .submissions
                .iter()
                .filter(|place| state.trouble(**place).is_some())
                .count(),
        }
    }

    /// Other hubs, nodes and webhooks that do not accept notifications.
    pub(crate) fn failing_hubs(&self) -> Vec<FailingHub> {
        let state = self.lock();
        let failing = state.table.submissions.iter().filter_map(|place| {
            let (entry, trouble) = state.trouble(*place)?;
            Some(FailingHub {
                target: entry.id,
                topic: state.table.topics.get(&entry.topic)?.url.to_string(),
                hub: match entry.kind {
                    TargetKind::Webhook => table::host_of(&entry.address),
                    _ => entry.address.to_string(),
                },
                attempts: trouble.failures,
                since: trouble.first_failed,
                status: trouble.status,
                kind: entry.kind,
            })
        });
        failing.collect()
    }

    /// Ends a target once it has all notifications, after at least one further delivery.
    pub(crate) fn end_when_done(&self, id: TargetId) {
        self.lock().last_words.insert(id);
    }

    /// Queues the next delivery of an idle target, if the topic has newer notifications.
    fn begin(&self, state: &mut State, place: TargetIndex) {
        let topic = state.table.get(place).and_then(|entry| state.table.topics.get(&entry.topic));
        let head = topic.map(|topic| topic.head);
        let State { table, lanes, .. } = state;
        let Some(entry) = table.get_mut(place) else { return };
        if head.is_none_or(|head| entry.cursor >= head) {
            entry.doing = TargetActivity::Idle;
            return;
        }
        let now = Instant::now();
        let due = entry.trouble.as_ref().and_then(|trouble| trouble.next_at);
        let pause = due.map_or(0, |due| due.as_micros() - self.clock.now().as_micros());
        if pause > 0 {
            entry.doing = TargetActivity::Waiting;
            // If the clock was set back far, the pause must not become years.
            let pause = Duration::from_micros(pause as u64)
                .min(self.options.retries.most.max(self.options.retries.retry_after));
            lanes.retry_at(now + pause, (place, entry.epoch));
        } else {
            entry.doing = TargetActivity::Ready;
            let patience = self.patience(entry);
            lanes.push(
                lanes.name_of(&entry.address),
                (place, entry.epoch),
                entry.pace,
                patience,
                now,
            );
        }
    }

    /// How long a slow target may occupy its place while others wait: by the time of its last
    /// delivery, and at every fourth failure the whole time of an exchange.
    fn patience(&self, entry: &Entry) -> Duration {
        let whole = self.options.sending.total;
        let failures = entry.trouble.as_ref().map_or(0, |trouble| trouble.failures);
        let needed = Duration::from_millis(u64::from(entry.took) * 4);
        if failures % 4 == 3 { whole } else { self.options.lanes.patience.max(needed).min(whole) }
    }

    /// Ends a target; [`Engine::part`] records it in the store.
    fn end(&self, state: &mut State, place: TargetIndex, why: Ending) {
        let Some(entry) = state.table.remove(place) else { return };
        // The URL of a callback is a secret, because a client that has it is treated as its owner.
        tracing::info!(
            target = entry.id.0,
            host = host_of(&entry.address),
            ?why,
            "a subscription ended"
        );
        self.counters.ended.fetch_add(1, Relaxed);
        state.ending.push(PendingEnd {
            id: entry.id,
            topic: entry.topic,
            address: entry.address,
            why,
        });
    }

    /// Takes ended targets from the engine and records them in the store. The lock is released
    /// first, since the store may block.
    fn part(&self) {
        let _parting = self.parting.lock().unwrap_or_else(PoisonError::into_inner);
        let ending = {
            let mut state = self.lock();
            let (wait, go): (Vec<_>, Vec<_>) = std::mem::take(&mut state.ending)
                .into_iter()
                .partition(|parting| state.is_settling(parting.topic, &parting.address));
            state.ending = wait;
            go
        };
        for PendingEnd { id, why, .. } in ending {
            // Another node may have renewed the lease since. It ends it otherwise.
            if why == Ending::LeaseOver && !self.held.may_deliver(id) {
                continue;
            }
            let done = move |result: Result<bool, LogError>| {
                if let Err(error) = result {
                    // The target is read again at the next start, and then ends again.
                    tracing::warn!(target = id.0, %error, "a subscription's end was not recorded");
                }
            };
            self.store.end_target_then(id, why, Box::new(done));
        }
    }

    /// Runs until [`Engine::stop`].
    pub(crate) async fn run(self: Arc<Self>) {
        worker::run(Arc::clone(&self)).await;
        self.farewell().await;
    }

    /// Moves targets whose pause is over to the lanes.
    fn take_retries(&self, now: Instant) {
        let mut state = self.lock();
        while let Some((place, epoch)) = state.lanes.retry(now) {
            if let Some(entry) = state.table.get_mut(place)
                && entry.epoch == epoch
                && entry.doing == TargetActivity::Waiting
            {
                if let Some(trouble) = &mut entry.trouble {
                    trouble.next_at = None;
                }
                self.begin(&mut state, place);
            }
        }
        state.lanes.tick(now);
    }

    /// Time at which there is work to do.
    fn next_due(&self, state: &mut State, now: Instant) -> Option<Instant> {
        if state.table.has_progress() && state.save_at.is_none() {
            state.save_at = Some(now + self.options.save_every);
        }
        let save = state.save_at.filter(|_| !state.saving);
        state.lanes.due().into_iter().chain(save).min()
    }

    /// Starts no more deliveries and lets [`Engine::run`] end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.lock().listeners.clear();
        self.wake.notify_one();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }
}

impl State {
    /// A target whose last attempts failed, with its failures.
    fn trouble(&self, place: TargetIndex) -> Option<(&Entry, &FailureState)> {
        let entry = self.table.get(place)?;
        let trouble = entry.trouble.as_deref().filter(|trouble| trouble.failures > 0)?;
        Some((entry, trouble))
    }

    fn is_settling(&self, topic: TopicId, address: &str) -> bool {
        self.settling.iter().any(|(one, callback)| *one == topic && callback == address)
    }

    fn add_topic(&mut self, id: TopicId, url: &str, head: Offset) {
        if let Some(entry) = self.table.topics.get_mut(&id) {
            entry.head = entry.head.max(head);
            return;
        }
        let url: Arc<str> = url.into();
        self.urls.insert(Arc::clone(&url), id);
        self.table.topics.insert(id, TopicEntry { url, head, members: Vec::new(), own: false });
    }
}
