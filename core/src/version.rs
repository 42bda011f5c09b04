//! Version policies: which earlier states of a resource are kept, and for how long.

use crate::{Position, State};
use abreast_webtypes::Timestamp;
use std::time::Duration;

/// A state that a resource had from some time on, until its next version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Since when: the time of the change that made it; when the log began, for what was imported.
    pub time: Timestamp,
    /// The change that made it; 0 for what was imported.
    pub position: Position,
    /// The state, without its links; `None`: the resource was not there. The bytes of a state whose
    /// `content` is `None` were not kept.
    pub state: Option<State>,
}

/// From which end are versions read?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the given time on.
    OldestFirst,
    /// From the given time back.
    NewestFirst,
}

/// How long a set keeps versions: each bound that is given holds. The newest version of a resource
/// that is there is always kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionPolicy {
    /// Most versions of one resource, deletions and the current state included; at least 1.
    pub count: Option<u32>,
    /// How long a version is kept after it was superseded; a deleted resource's last one after the
    /// deletion.
    pub age: Option<Duration>,
    /// Most bytes of kept contents of the whole set, equal ones counted once. Those longest
    /// superseded go first.
    pub bytes: Option<u64>,
}

impl VersionPolicy {
    /// Whether it never drops anything.
    pub const fn keeps_all(&self) -> bool {
        self.count.is_none() && self.age.is_none() && self.bytes.is_none()
    }
}

/// The result of a step of collecting versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Versions dropped.
    pub dropped: u64,
    /// Nothing more is due now.
    pub complete: bool,
    /// Bytes of kept contents of the set, equal ones counted once.
    pub kept_bytes: u64,
}
