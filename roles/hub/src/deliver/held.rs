//! The shards of this node, and the time until which it may start work.

use abreast_core::hub::{HubShard, Membership, TargetId, VerificationId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Tenths of a lease after which another node may already have the shards. The clocks of the node and
/// of the store may run at different speeds.
const SURE_TENTHS: u32 = 9;

/// The shards of this node.
///
/// In a store that several nodes share, a node starts work only for its loaded shards, and only in
/// the first half of its lease. The time is measured by the monotonic clock of the node, from the
/// start of the last renewal, so that a node that was stopped starts nothing when it continues.
/// Without nodes, the process has all shards at any time.
pub(crate) struct HeldShards(Option<Mutex<Held>>);

#[derive(Default)]
struct Held {
    /// Shards that the store assigned to this node. A shard that the node lost and got again has
    /// another number, because its targets in memory are outdated.
    assigned: BTreeMap<HubShard, u64>,
    /// Assigned shards whose targets are in memory, with the number at that time.
    loaded: BTreeMap<HubShard, u64>,
    /// Shards that the node gives back, until the store has recorded this.
    leaving: BTreeSet<HubShard>,
    last_number: u64,
    surplus: usize,
    nodes: usize,
    /// Start of the last successful renewal.
    renewed: Option<Instant>,
    /// The failure of the last renewal, if it failed.
    failure: Option<String>,
    lease: Duration,
}

/// Numbers about the shards, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldStatus {
    pub(crate) shards: usize,
    pub(crate) nodes: usize,
    pub(crate) since_renewal: Duration,
}

impl HeldShards {
    pub(crate) fn new(is_shared: bool) -> Self {
        Self(is_shared.then(Mutex::default))
    }

    fn lock(&self) -> Option<MutexGuard<'_, Held>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether several nodes share the store.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the targets of the target's shard are in memory and current.
    pub(crate) fn has_loaded(&self, id: TargetId) -> bool {
        self.lock().is_none_or(|held| held.has_loaded(HubShard::of_target(id)))
    }

    /// Whether the verifications of the verification's shard are in memory and current.
    pub(crate) fn has_loaded_request(&self, id: VerificationId) -> bool {
        self.lock().is_none_or(|held| held.has_loaded(HubShard::of_verification(id)))
    }

    /// Whether any work may start now.
    pub(crate) fn may_start(&self) -> bool {
        self.lock().is_none_or(|held| held.may_start())
    }

    /// Whether a delivery to the target may start now.
    pub(crate) fn may_deliver(&self, id: TargetId) -> bool {
        self.lock().is_none_or(|held| held.may_start_in(HubShard::of_target(id)))
    }

    /// Whether a verification may start now.
    pub(crate) fn may_verify(&self, id: VerificationId) -> bool {
        self.lock().is_none_or(|held| held.may_start_in(HubShard::of_verification(id)))
    }

    /// Whether this node may start work of the whole hub now.
    pub(crate) fn is_first(&self) -> bool {
        self.lock().is_none_or(|held| held.may_start_in(HubShard::FIRST))
    }

    /// Whether the store assigned the work of the whole hub to this node.
    pub(crate) fn has_first(&self) -> bool {
        self.lock().is_none_or(|held| held.assigned.contains_key(&HubShard::FIRST))
    }

    /// Records a renewal that started at this time.
    pub(crate) fn renewed(&self, started: Instant, membership: Membership) {
        let Some(mut held) = self.lock() else { return };
        // The lease may have ended before this renewal, and other nodes may have had the shards.
        let sure = held.lease / 10 * SURE_TENTHS;
        if held.renewed.is_some_and(|renewed| renewed.elapsed() >= sure) {
            held.assigned.clear();
        }
        let Membership { shards, surplus, nodes, lease, missing: _ } = membership;
        let now: BTreeSet<_> = shards.into_iter().collect();
        held.assigned.retain(|shard, _| now.contains(shard));
        for shard in now {
            if !held.leaving.contains(&shard) && !held.assigned.contains_key(&shard) {
                held.last_number += 1;
                let number = held.last_number;
                held.assigned.insert(shard, number);
            }
        }
        held.surplus = surplus.saturating_sub(held.leaving.len());
        (held.nodes, held.lease, held.renewed) = (nodes, lease, Some(started));
        held.failure = None;
    }

    /// Records that a renewal failed.
    pub(crate) fn not_renewed(&self, why: String) {
        if let Some(mut held) = self.lock() {
            held.failure = Some(why);
        }
    }

    /// Checks that the last renewal succeeded, in the last half of a lease.
    pub(crate) fn check_lease(&self) -> Result<(), String> {
        let Some(held) = self.lock() else { return Ok(()) };
        if let Some(why) = &held.failure {
            return Err(format!("the lease of this node cannot be renewed: {why}"));
        }
        if held.may_start() {
            return Ok(());
        }
        let since = held.renewed.map_or(Duration::ZERO, |renewed| renewed.elapsed());
        Err(format!(
            "the lease of this node was renewed {:.1} s ago, which is more than half of {:.1} s",
            since.as_secs_f64(),
            held.lease.as_secs_f64()
        ))
    }

    /// Assigned shards without targets in memory, with their numbers.
    pub(crate) fn to_load(&self) -> Vec<(HubShard, u64)> {
        let Some(held) = self.lock() else { return Vec::new() };
        // The targets of a lost shard leave the memory first.
        let missing = held.assigned.iter().filter(|(shard, _)| !held.loaded.contains_key(shard));
        missing.map(|(shard, number)| (*shard, *number)).collect()
    }

    /// Reports that the targets of a shard are in memory. Returns `false` if the node lost the
    /// shard meanwhile.
    pub(crate) fn loaded(&self, shard: HubShard, number: u64) -> bool {
        let Some(mut held) = self.lock() else { return true };
        held.loaded.insert(shard, number);
        held.has_loaded(shard)
    }

    /// All shards that are loaded and current.
    pub(crate) fn current(&self) -> Vec<HubShard> {
        let Some(held) = self.lock() else { return Vec::new() };
        held.loaded.keys().copied().filter(|shard| held.has_loaded(*shard)).collect()
    }

    /// Takes loaded shards that the node lost, whose targets must leave the memory. Does not
    /// include shards that the node gives back.
    pub(crate) fn take_lost(&self) -> BTreeSet<HubShard> {
        let Some(mut held) = self.lock() else { return BTreeSet::new() };
        let lost = held.loaded.keys().copied();
        let lost = lost.filter(|shard| !held.has_loaded(*shard) && !held.leaving.contains(shard));
        let lost: BTreeSet<_> = lost.collect();
        held.loaded.retain(|shard, _| !lost.contains(shard));
        lost
    }

    /// Chooses the shards that the node gives back, if it has too many: the highest. No work starts
    /// for them any more.
    pub(crate) fn leave_surplus(&self) -> BTreeSet<HubShard> {
        let Some(mut held) = self.lock() else { return BTreeSet::new() };
        let surplus = std::mem::take(&mut held.surplus);
        let chosen: BTreeSet<_> = held.assigned.keys().rev().take(surplus).copied().collect();
        held.assigned.retain(|shard, _| !chosen.contains(shard));
        held.leaving.extend(&chosen);
        chosen
    }

    /// Reports that shards are no longer in memory. Assigned shards are to be loaded again then.
    pub(crate) fn unloaded(&self, shards: &BTreeSet<HubShard>) {
        if let Some(mut held) = self.lock() {
            held.loaded.retain(|shard, _| !shards.contains(shard));
        }
    }

    /// Reports that the store has recorded that these shards were given back, or failed to do so:
    /// then the next renewal assigns them again.
    pub(crate) fn left(&self, shards: &BTreeSet<HubShard>) {
        if let Some(mut held) = self.lock() {
            held.leaving.retain(|shard| !shards.contains(shard));
        }
    }

    /// Numbers for metrics.
    pub(crate) fn status(&self) -> HeldStatus {
        let Some(held) = self.lock() else { return HeldStatus::default() };
        HeldStatus {
            shards: held.assigned.len(),
            nodes: held.nodes,
            since_renewal: held.renewed.map_or(Duration::ZERO, |renewed| renewed.elapsed()),
        }
    }
}

impl Held {
    fn has_loaded(&self, shard: HubShard) -> bool {
        let number = self.loaded.get(&shard);
        number.is_some() && number == self.assigned.get(&shard)
    }

    fn may_start(&self) -> bool {
        self.renewed.is_some_and(|renewed| renewed.elapsed() < self.lease / 2)
    }

    fn may_start_in(&self, shard: HubShard) -> bool {
        self.has_loaded(shard) && self.may_start()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(3_600);

    fn membership(shards: &[u16], surplus: usize) -> Membership {
        let shards = shards.iter().map(|shard| HubShard(*shard)).collect();
        Membership { shards, surplus, missing: 0, nodes: 2, lease: LEASE }
    }

    fn load(held: &HeldShards) {
        for (shard, number) in held.to_load() {
            assert!(held.loaded(shard, number));
        }
    }

    #[test]
    fn work_starts_in_the_first_half_of_the_lease() {
        let held = HeldShards::new(true);
        assert!(!held.may_start());
        held.renewed(Instant::now(), membership(&[0, 1], 0));
        assert!(held.may_start() && !held.is_first(), "the shard is not loaded yet");
        load(&held);
        assert!(held.is_first() && held.may_deliver(TargetId(1)) && !held.may_deliver(TargetId(2)));
        let Some(earlier) = Instant::now().checked_sub(LEASE / 2) else { return };
        held.renewed(earlier, membership(&[0, 1], 0));
        assert!(!held.may_start() && !held.is_first() && !held.may_deliver(TargetId(1)));
    }

    #[test]
    fn a_lease_is_checked_by_its_last_renewal() {
        let alone = HeldShards::new(false);
        alone.not_renewed("unused".to_owned());
        assert_eq!(alone.check_lease(), Ok(()));
        let held = HeldShards::new(true);
        held.renewed(Instant::now(), membership(&[0], 0));
        assert_eq!(held.check_lease(), Ok(()));
        held.not_renewed("the database is read-only".to_owned());
        assert!(held.check_lease().unwrap_err().contains("read-only"));
        held.renewed(Instant::now(), membership(&[0], 0));
        assert_eq!(held.check_lease(), Ok(()));
        let Some(earlier) = Instant::now().checked_sub(LEASE / 2) else { return };
        held.renewed(earlier, membership(&[0], 0));
        assert!(held.check_lease().unwrap_err().contains("more than half of 3600.0 s"));
    }

    #[test]
    fn a_process_alone_has_everything() {
        let held = HeldShards::new(false);
        assert!(held.may_start() && held.is_first() && held.may_deliver(TargetId(7)));
        assert!(held.to_load().is_empty() && held.take_lost().is_empty());
    }

    #[test]
    fn lost_shards_are_loaded_again_when_they_come_back() {
        let held = HeldShards::new(true);
        held.renewed(Instant::now(), membership(&[3, 4], 0));
        load(&held);
        held.renewed(Instant::now(), membership(&[4], 0));
        held.renewed(Instant::now(), membership(&[3, 4], 0));
        assert!(!held.may_deliver(TargetId(3)) && held.may_deliver(TargetId(4)));
        assert_eq!(held.take_lost(), BTreeSet::from([HubShard(3)]));
        load(&held);
        assert!(held.may_deliver(TargetId(3)) && held.take_lost().is_empty());
    }

    #[test]
    fn a_renewal_after_the_lease_makes_the_memory_invalid() {
        let held = HeldShards::new(true);
        let Some(earlier) = Instant::now().checked_sub(LEASE) else { return };
        held.renewed(earlier, membership(&[3], 0));
        load(&held);
        held.renewed(Instant::now(), membership(&[3], 0));
        assert!(!held.may_deliver(TargetId(3)));
        assert_eq!(held.take_lost(), BTreeSet::from([HubShard(3)]));
    }

    #[test]
    fn the_highest_shards_are_given_back() {
        let held = HeldShards::new(true);
        held.renewed(Instant::now(), membership(&[0, 1, 2, 3], 2));
        load(&held);
        let leaving = held.leave_surplus();
        assert_eq!(leaving, BTreeSet::from([HubShard(2), HubShard(3)]));
        assert!(!held.may_deliver(TargetId(3)) && held.may_deliver(TargetId(1)));
        // A renewal that the store made before it recorded the return.
        held.renewed(Instant::now(), membership(&[0, 1, 2, 3], 2));
        assert!(held.leave_surplus().is_empty() && held.take_lost().is_empty());
        held.unloaded(&leaving);
        held.left(&leaving);
        held.renewed(Instant::now(), membership(&[0, 1], 0));
        assert_eq!(held.current(), [HubShard(0), HubShard(1)]);
    }
}
