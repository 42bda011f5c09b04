//! The targets of this node's shards in memory, and the changes of other nodes.

use super::membership::LeaseHolder;
use super::signal::StopSignal;
use crate::deliver::Engine;
use crate::message::outage::Outage;
use crate::tasks::fetch::Fetcher;
use crate::tasks::verify::Verifier;
use abreast_core::LogError;
use abreast_core::hub::{HubChanges, HubNodes, HubRevision, HubShard, TargetId, VerificationId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often this node asks for the changes of other nodes.
const POLL: Duration = Duration::from_millis(50);
/// The longest pause while the store fails.
const POLL_MAX: Duration = Duration::from_secs(1);
/// Targets and verifications that are read at once.
const PAGE: usize = 1_000;
/// After loading shards for this time, changes of other nodes come first.
const LOADING: Duration = Duration::from_millis(200);
/// How long shards to be given back wait for running deliveries; then these are aborted.
const PATIENCE: Duration = Duration::from_secs(5);

/// Loads shards, gives them back, and applies the changes of other nodes. One thread does all of
/// this, so that a change is never applied before the targets of its shard are loaded.
pub(super) struct Follower {
    engine: Arc<Engine>,
    verifier: Arc<Verifier>,
    fetcher: Arc<Fetcher>,
    holder: Arc<LeaseHolder>,
    /// All changes up to this revision are in memory. Shards are loaded after this revision was read,
    /// so that later changes to them are found.
    revision: HubRevision,
    leaving: Option<Leaving>,
}

/// Shards to be given back.
struct Leaving {
    shards: BTreeSet<HubShard>,
    since: Instant,
}

impl Follower {
    pub(super) fn new(
        engine: Arc<Engine>,
        verifier: Arc<Verifier>,
        fetcher: Arc<Fetcher>,
        holder: Arc<LeaseHolder>,
        revision: HubRevision,
    ) -> Self {
        Self { engine, verifier, fetcher, holder, revision, leaving: None }
    }

    /// Works until the signal.
    pub(super) fn run(mut self, stop: &StopSignal) {
        const HELP: &str = "check the database";
        let (mut pause, mut outage) = (Duration::ZERO, Outage::default());
        while !stop.wait(pause) {
            self.drop_lost();
            let done = [self.give_back(), self.load(), self.follow()];
            let done = done.into_iter().collect::<Result<Vec<()>, _>>();
            outage.log("reads of the changes of other nodes", HELP, &done);
            pause = match done {
                Ok(_) if self.engine.held.to_load().is_empty() => POLL,
                Ok(_) => Duration::ZERO,
                Err(_) => (pause * 2).clamp(POLL, POLL_MAX),
            };
        }
    }

    fn nodes(&self) -> Option<&dyn HubNodes> {
        self.engine.store.nodes()
    }

    /// Removes the targets of lost shards from memory. Other nodes deliver to them now.
    fn drop_lost(&self) {
        let lost = self.engine.held.take_lost();
        if !lost.is_empty() {
            tracing::warn!(
                shards = lost.len(),
                "this node lost a part of the targets to other nodes"
            );
            self.release(&lost);
        }
    }

    fn release(&self, shards: &BTreeSet<HubShard>) {
        self.engine.release(shards);
        self.verifier.release(shards);
        if shards.contains(&HubShard::FIRST) {
            self.fetcher.release();
        }
    }

    /// Gives shards to nodes that have fewer: when no delivery to their targets is running, or after
    /// a limit of time.
    fn give_back(&mut self) -> Result<(), LogError> {
        let held = &self.engine.held;
        let Leaving { shards, since } = match self.leaving.take() {
            Some(leaving) => leaving,
            None => Leaving { shards: held.leave_surplus(), since: Instant::now() },
        };
        if shards.is_empty() {
            return Ok(());
        }
        if self.engine.running_in(&shards) > 0 && since.elapsed() < PATIENCE {
            self.leaving = Some(Leaving { shards, since });
            return Ok(());
        }
        if let Err(error) = self.engine.record_progress() {
            self.leaving = Some(Leaving { shards, since });
            return Err(error);
        }
        self.release(&shards);
        held.unloaded(&shards);
        self.holder.give_back(&shards)?;
        tracing::info!(
            shards = shards.len(),
            "this node gave a part of the targets to other nodes"
        );
        Ok(())
    }

    /// Loads new shards, for a limited time.
    fn load(&self) -> Result<(), LogError> {
        let started = Instant::now();
        for (shard, number) in self.engine.held.to_load() {
            if let Err(error) = self.load_shard(shard, number) {
                self.release(&BTreeSet::from([shard]));
                return Err(error);
            }
            if started.elapsed() > LOADING {
                break;
            }
        }
        Ok(())
    }

    fn load_shard(&self, shard: HubShard, number: u64) -> Result<(), LogError> {
        let Some(nodes) = self.nodes() else { return Ok(()) };
        let (mut ids, mut after) = (Vec::new(), TargetId(0));
        loop {
            let page = nodes.targets_in(shard, after, PAGE)?;
            let Some(last) = page.last() else { break };
            after = last.id;
            ids.extend(page.iter().map(|target| target.id));
            self.engine.load_targets(page)?;
        }
        let (mut verifications, mut after) = (Vec::new(), VerificationId(0));
        loop {
            let page = nodes.verifications_in(shard, after, PAGE)?;
            let Some(last) = page.last() else { break };
            after = last.id;
            verifications.extend(page);
        }
        if shard == HubShard::FIRST {
            self.fetcher.read_log()?;
        }
        // Otherwise the shard is lost already, and its targets leave the memory again.
        if self.engine.held.loaded(shard, number) {
            self.engine.start_loaded(&ids);
            for found in &verifications {
                self.verifier.add_stored(found);
            }
            self.fetcher.start_waiting();
        }
        Ok(())
    }

    /// Applies the changes since the last call.
    fn follow(&mut self) -> Result<(), LogError> {
        let newest = match self.nodes() {
            Some(nodes) => nodes.revision()?,
            None => return Ok(()),
        };
        if newest == self.revision {
            return Ok(());
        }
        // Another stamp of the same number is one of the lost changes.
        if newest.number <= self.revision.number {
            return self.start_again(newest);
        }
        let shards = self.engine.held.current();
        loop {
            let Some(nodes) = self.nodes() else { return Ok(()) };
            let Some(changes) = nodes.changes_after(self.revision, &shards)? else {
                return self.start_again(newest);
            };
            let revision = changes.revision;
            self.apply(changes, &shards)?;
            if revision.number <= self.revision.number {
                return Ok(());
            }
            self.revision = revision;
        }
    }

    /// Loads everything again, because the store has lost changes that this node knows.
    fn start_again(&mut self, newest: HubRevision) -> Result<(), LogError> {
        let (known, newest_number) = (self.revision.number, newest.number);
        tracing::warn!(
            known,
            newest = newest_number,
            "the store has lost changes, as after a restore or a failover"
        );
        let shards: BTreeSet<_> = self.engine.held.current().into_iter().collect();
        self.release(&shards);
        self.engine.held.unloaded(&shards);
        self.engine.start_again()?;
        // After a failure, everything is loaded by the next call.
        self.revision = newest;
        Ok(())
    }

    /// Applies changes; those that were applied before have no effect.
    fn apply(&self, changes: HubChanges, shards: &[HubShard]) -> Result<(), LogError> {
        let mut has_reports = false;
        for (id, url, head) in changes.topics {
            has_reports |= id == self.fetcher.topic;
            self.engine.follow_topic(id, &url, head);
        }
        for target in changes.targets {
            self.engine.follow_target(target)?;
        }
        for id in changes.ended {
            self.engine.forget(id);
        }
        for verification in changes.verifications {
            self.verifier.follow(&verification);
        }
        if has_reports && shards.contains(&HubShard::FIRST) {
            self.fetcher.read_log()?;
        }
        Ok(())
    }
}
