//! Requests that come from other nodes, and go to them, in a store that several nodes share.

use super::Verifier;
use crate::deliver::table::host_of;
use abreast_core::hub::{HubShard, Settled, Verification, VerificationMode};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl Verifier {
    /// Adds a request that any node accepted. Only this node knows how often the callback did not
    /// confirm, so a request over that limit is dropped here.
    pub(crate) fn follow(&self, stored: &Verification) {
        if !self.engine.held.has_loaded_request(stored.id) {
            return;
        }
        let request = &stored.request;
        let is_known = self.lock().pending.contains_key(&stored.id);
        let asks = request.mode != VerificationMode::Denied;
        if !is_known && asks && self.may_ask(&request.callback, &request.topic_url).is_err() {
            tracing::info!(
                host = host_of(&request.callback),
                topic = request.topic_url,
                "not confirmed before, and not asked again so soon"
            );
            self.engine.counters.unconfirmed.fetch_add(1, Relaxed);
            let done = Box::new(|_| ());
            return self.engine.store.finish_verification_then(stored.id, Settled::Dropped, done);
        }
        self.add_stored(stored);
    }

    /// Removes the requests of these shards from memory, and aborts their running verifications.
    pub(crate) fn release(&self, shards: &BTreeSet<HubShard>) {
        let is_gone = |id| shards.contains(&HubShard::of_verification(id));
        let now = Instant::now();
        let mut state = self.lock();
        state.lanes.abort(is_gone);
        let gone: Vec<_> = state.pending.keys().copied().filter(|id| is_gone(*id)).collect();
        for id in &gone {
            let Some(pending) = state.pending.remove(id) else { continue };
            if let Some(chain) = state.chains.get_mut(&pending.key) {
                chain.behind.retain(|behind| behind != id);
            }
            state.go_on(pending.key, *id, now);
        }
    }

    /// Starts verifications that wait for a renewal of the node's lease.
    pub(crate) fn start_waiting(&self) {
        self.wake.notify_one();
    }
}
