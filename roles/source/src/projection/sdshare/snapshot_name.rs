//! Names of snapshots in paths and in file names.

use crate::projection::routes::PathValue;
use abreast_core::Head;
use abreast_webtypes::Timestamp;
use serde::{Deserialize, Serialize};

/// Name of a snapshot: time and position of the log's last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct SnapshotName {
    /// Time in microseconds since 1970.
    pub(super) time: i64,
    pub(super) position: u64,
}

impl SnapshotName {
    pub(crate) fn of(head: &Head) -> Self {
        Self { time: head.time.as_micros(), position: head.position.0 }
    }

    /// Time of the last included change.
    pub(super) fn time(self) -> Timestamp {
        Timestamp::from_micros(self.time)
    }
}

impl std::fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.time, self.position)
    }
}

impl PathValue for SnapshotName {
    fn parse(text: &str) -> Option<Self> {
        let (time, position) = text.split_once('-')?;
        let name = Self { time: time.parse().ok()?, position: position.parse().ok()? };
        (name.to_string() == text).then_some(name)
    }

    fn write(&self, path: &mut String) {
        path.push_str(&self.to_string());
    }
}
