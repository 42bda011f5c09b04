//! The names of snapshots.

use abreast_core::Head;
use abreast_webtypes::Timestamp;
use serde::{Deserialize, Serialize};

/// The name of a snapshot: where the log stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct SnapshotName {
    /// Microseconds since 1970.
    pub(super) time: i64,
    pub(super) position: u64,
}

impl SnapshotName {
    pub(crate) fn of(head: &Head) -> Self {
        Self { time: head.time.as_micros(), position: head.position.0 }
    }

    /// The time of the last change that it includes.
    pub(super) fn time(self) -> Timestamp {
        Timestamp::from_micros(self.time)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (time, position) = text.split_once('-')?;
        let name = Self { time: time.parse().ok()?, position: position.parse().ok()? };
        (name.to_string() == text).then_some(name)
    }
}

impl std::fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.time, self.position)
    }
}
