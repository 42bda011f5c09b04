//! Topics with new notifications: their targets get the next delivery.

use super::Engine;
use super::table::TargetActivity;
use abreast_core::{Offset, TopicId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

impl Engine {
    /// Reports a new notification in a topic's log, with its offset if that is known. Cheap, and
    /// callable from any thread.
    pub(crate) fn published(&self, topic: TopicId, offset: Option<Offset>) {
        let mut changed = self.changed_topics.lock().unwrap_or_else(PoisonError::into_inner);
        changed.push((topic, offset));
        drop(changed);
        self.wake.notify_one();
    }

    /// Moves targets of topics with new notifications to the lanes. Offsets that are not known are
    /// read on another thread, since the store may block.
    pub(super) fn take_changed_topics(self: &Arc<Self>) {
        let changed = std::mem::take(
            &mut *self.changed_topics.lock().unwrap_or_else(PoisonError::into_inner),
        );
        let (mut heads, mut unread) = (BTreeMap::new(), BTreeSet::new());
        for (topic, offset) in changed {
            match offset {
                Some(offset) => {
                    let head: &mut Offset = heads.entry(topic).or_default();
                    *head = offset.max(*head);
                }
                None => drop(unread.insert(topic)),
            }
        }
        if !unread.is_empty() {
            let engine = Arc::clone(self);
            tokio::task::spawn_blocking(move || engine.read_heads(unread));
        }
        for (topic, head) in heads {
            let mut state = self.lock();
            let Some(entry) = state.table.topics.get_mut(&topic) else { continue };
            entry.head = entry.head.max(head);
            let head = entry.head;
            if let Some(listeners) = state.listeners.get(&topic) {
                listeners.send_replace(head.0);
            }
            let members = state.table.topics.get(&topic).map_or(0, |entry| entry.members.len());
            for member in 0..members {
                let place = state
                    .table
                    .topics
                    .get(&topic)
                    .and_then(|entry| entry.members.get(member).copied());
                if let Some(place) = place
                    && state
                        .table
                        .get(place)
                        .is_some_and(|entry| entry.doing == TargetActivity::Idle)
                {
                    self.begin(&mut state, place);
                }
            }
        }
    }

    /// Reads the last offsets of topics with new notifications. Blocks.
    fn read_heads(&self, topics: BTreeSet<TopicId>) {
        for topic in topics {
            match self.store.head(topic) {
                Ok(head) => self.published(topic, Some(head)),
                Err(error) => tracing::warn!(topic = topic.0, %error, "a topic cannot be read"),
            }
        }
    }
}
