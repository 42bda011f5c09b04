//! Several nodes that deliver from one store.

use super::target::{Target, TargetId};
use super::verification::{Verification, VerificationId};
use crate::{LogError, Offset, TopicId};
use std::time::Duration;

/// Number of parts into which targets and verifications are divided among nodes.
pub const HUB_SHARDS: u16 = 1_024;

/// A part of the targets and verifications, below [`HUB_SHARDS`]. A callback's verifications and
/// its target, in one topic, are in the same part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HubShard(pub u16);

impl HubShard {
    /// The part that belongs to the node which does the work of the whole hub: it fetches topics and
    /// drops old notifications.
    pub const FIRST: Self = Self(0);

    /// The part of a target, in a store with several nodes.
    pub const fn of_target(id: TargetId) -> Self {
        Self(id.0.rem_euclid(HUB_SHARDS as i64) as u16)
    }

    /// The part of a verification, in a store with several nodes.
    pub const fn of_verification(id: VerificationId) -> Self {
        Self(id.0.rem_euclid(HUB_SHARDS as i64) as u16)
    }
}

/// The lease of a node, after its renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Shards that only this node delivers, in order.
    pub shards: Vec<HubShard>,
    /// Number of these shards that the node gives back, because other nodes have fewer.
    pub surplus: usize,
    /// Number of shards that the node lacks to an equal part, because others still have them.
    pub missing: usize,
    /// Number of nodes that deliver and whose lease is valid.
    pub nodes: usize,
    /// Time from the start of the renewal to the end of the lease.
    pub lease: Duration,
}

/// A target that was created, renewed or replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedTarget {
    /// The target after its last change.
    pub target: Target,
    /// Whether an operator set the cursor.
    pub replayed: bool,
}

/// A revision of a store. The number grows with each change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HubRevision {
    /// The number of the revision.
    pub number: u64,
    /// A random number of this change. After a failover that lost changes, the same numbers of
    /// revisions are used again, with other stamps.
    pub stamp: u64,
}

/// Changes of all nodes in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubChanges {
    /// All changes up to this revision are included; continue after it.
    pub revision: HubRevision,
    /// Topics that were created, or have new notifications: number, URL and last offset.
    pub topics: Vec<(TopicId, String, Offset)>,
    /// Targets that were created, renewed or replayed, in the shards of the request.
    pub targets: Vec<ChangedTarget>,
    /// Numbers of targets that ended.
    pub ended: Vec<TargetId>,
    /// Verifications that were requested, in the shards of the request.
    pub verifications: Vec<Verification>,
}

/// The nodes of a hub, which share its store and divide its targets.
///
/// A node delivers to the targets of its shards only. A node that shares the store without delivering never
/// has shards. A shard belongs to one node at a time: until
/// the node gives it back, or its lease ends. Progress that a node records after the end of its lease
/// is refused.
pub trait HubNodes: Send + Sync {
    /// Renews the lease of this node, takes shards of ended nodes up to an equal part for each node,
    /// and returns the shards that the node has. After the end of a lease, the node gets a new one,
    /// without its former shards.
    ///
    /// # Errors
    /// When the store cannot be reached; the lease then ends at its known end.
    fn renew(&self) -> Result<Membership, LogError>;

    /// Gives shards back, after their progress is recorded.
    ///
    /// # Errors
    /// When the store fails; the node still has the shards then.
    fn give_back(&self, shards: &[HubShard]) -> Result<(), LogError>;

    /// Ends the lease of this node, and gives all its shards back. A node calls this when it stops.
    ///
    /// # Errors
    /// When the store fails; other nodes take the shards after the end of the lease.
    fn leave(&self) -> Result<(), LogError>;

    /// The revision of the store: it grows with each change, but for the progress of targets.
    ///
    /// # Errors
    /// When the store fails.
    fn revision(&self) -> Result<HubRevision, LogError>;

    /// Changes after a revision, in shards of this node. May end before the newest revision: call it
    /// again until `revision` does not grow. `None` if the store does not have the revision, or another
    /// one that this node recorded or read: it lost the change in a failover or a restore, or the
    /// revision is too old to be known. Progress of this node is refused then, until
    /// [`HubNodes::start_again`].
    ///
    /// # Errors
    /// When the store fails.
    fn changes_after(
        &self,
        known: HubRevision,
        shards: &[HubShard],
    ) -> Result<Option<HubChanges>, LogError>;

    /// Reports that this node has forgotten everything that it recorded and read, and reads it again.
    /// No progress may be waiting to be recorded.
    fn start_again(&self);

    /// Targets of a shard with larger numbers than `after`, in order, at most `limit`.
    ///
    /// # Errors
    /// When the store fails.
    fn targets_in(
        &self,
        shard: HubShard,
        after: TargetId,
        limit: usize,
    ) -> Result<Vec<Target>, LogError>;

    /// Verifications of a shard with larger numbers than `after`, in order, at most `limit`.
    ///
    /// # Errors
    /// When the store fails.
    fn verifications_in(
        &self,
        shard: HubShard,
        after: VerificationId,
        limit: usize,
    ) -> Result<Vec<Verification>, LogError>;
}
