//! Targets that come from other nodes, and go to them, in a store that several nodes share.

use super::table::TargetActivity;
use super::{Engine, State};
use abreast_core::hub::{ChangedTarget, HubShard, Target, TargetId};
use abreast_core::{LogError, Offset, TopicId};
use std::collections::BTreeSet;

impl Engine {
    /// Adds a topic that any node created, or its new notifications.
    pub(crate) fn follow_topic(&self, id: TopicId, url: &str, head: Offset) {
        self.lock().add_topic(id, url, head);
        self.published(id, Some(head));
    }

    /// Adds targets of a shard that is not loaded yet. No delivery to them starts before
    /// [`Engine::start_loaded`]. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn load_targets(&self, targets: Vec<Target>) -> Result<(), LogError> {
        for target in targets {
            self.know_topic(target.topic)?;
            self.lock().table.put(target);
        }
        Ok(())
    }

    /// Starts deliveries to targets whose shards are loaded now.
    pub(crate) fn start_loaded(&self, ids: &[TargetId]) {
        for id in ids {
            let mut state = self.lock();
            let Some(place) = state.table.place(*id) else { continue };
            if state.table.get(place).is_some_and(|entry| entry.doing == TargetActivity::Idle) {
                self.begin(&mut state, place);
            }
        }
        self.start_waiting();
    }

    /// Starts work that waits for a renewal of the node's lease.
    pub(crate) fn start_waiting(&self) {
        self.wake.notify_one();
    }

    /// Adds, renews or replays a target as another node recorded it. Repeated changes have no effect.
    /// Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn follow_target(&self, changed: ChangedTarget) -> Result<(), LogError> {
        let ChangedTarget { target, replayed } = changed;
        self.know_topic(target.topic)?;
        let known = {
            let state = self.lock();
            let entry = state.table.place(target.id).and_then(|place| state.table.get(place));
            entry.map(|entry| entry.generation)
        };
        match known {
            Some(generation) if generation >= target.generation => {}
            Some(_) if replayed => {
                self.webhooks.forget(target.id);
                self.moved(&target);
            }
            _ => self.put(target),
        }
        Ok(())
    }

    /// Reads a topic that is not in the table yet.
    fn know_topic(&self, id: TopicId) -> Result<(), LogError> {
        if self.url(id).is_some() {
            return Ok(());
        }
        if let Some(topic) = self.store.topic(id)? {
            self.lock().add_topic(topic.id, &topic.url, topic.head);
        }
        Ok(())
    }

    /// Number of running deliveries to targets of these shards.
    pub(crate) fn running_in(&self, shards: &BTreeSet<HubShard>) -> usize {
        let state = self.lock();
        state.lanes.running().filter(|(place, _)| state.is_in(*place, shards)).count()
    }

    /// Removes the targets of these shards from memory, without recording their progress. Running
    /// deliveries to them are aborted.
    pub(crate) fn release(&self, shards: &BTreeSet<HubShard>) {
        let mut state = self.lock();
        state.lanes.abort(|(place, _)| state.is_in(place, shards));
        for place in state.table.places() {
            if state.is_in(place, shards)
                && let Some(entry) = state.table.remove(place)
            {
                self.webhooks.forget(entry.id);
            }
        }
        state.table.drop_progress(|id| shards.contains(&HubShard::of_target(id)));
    }
}

impl State {
    /// Whether the target at a place of the table belongs to one of these shards.
    fn is_in(&self, place: super::table::TargetIndex, shards: &BTreeSet<HubShard>) -> bool {
        let entry = self.table.get(place);
        entry.is_some_and(|entry| shards.contains(&HubShard::of_target(entry.id)))
    }
}
