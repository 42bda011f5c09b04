//! Version policies: which earlier versions of a resource are retained, and for how long.

use crate::{Position, State};
use abreast_webtypes::Timestamp;
use std::time::Duration;

/// The properties of a resource from one change on, until its next version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Time of the change that made the version; for imported resources, the start of the log.
    pub time: Timestamp,
    /// Position of the change that made the version; 0 for imported resources.
    pub position: Position,
    /// Properties without links; `None` if the resource was not in the set. The store does not have
    /// the bytes of a version whose `content` is `None`.
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

/// How long a set retains versions. Each given bound applies. The newest version of a resource in
/// the set is always retained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionPolicy {
    /// Most versions of a resource, including deletions and the current version; at least 1.
    pub count: Option<u32>,
    /// How long a superseded version is retained; the last version of a deleted resource, after the
    /// deletion.
    pub age: Option<Duration>,
    /// Most bytes of stored contents of the whole set, with equal contents counted once. The
    /// versions superseded longest ago are dropped first.
    pub bytes: Option<u64>,
}

impl VersionPolicy {
    /// Whether the policy never drops a version.
    pub const fn keeps_all(&self) -> bool {
        self.count.is_none() && self.age.is_none() && self.bytes.is_none()
    }
}

/// The result of a step of collecting versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Number of versions that the step dropped.
    pub dropped: u64,
    /// Nothing more is due now.
    pub complete: bool,
    /// Bytes of stored contents of the set, with equal contents counted once.
    pub kept_bytes: u64,
}
