//! Names of snapshots in paths and in file names.

use crate::projection::routes::PathValue;
use abreast_core::Head;
use abreast_webtypes::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

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

    /// Text of the comment in each file of the snapshot of a set.
    pub(super) fn comment(self, slug: &str) -> String {
        // A comment of XML does not contain `--` [xml §2.5], and comments do not contain control characters.
        let mut set = String::with_capacity(slug.len());
        for byte in slug.bytes() {
            match byte {
                b'-' if !set.ends_with('-') => set.push('-'),
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'~' => {
                    set.push(char::from(byte));
                }
                _ => {
                    let _ = write!(set, "%{byte:02X}");
                }
            }
        }
        format!("snapshot of set={set} time={} position={}", self.time(), self.position)
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
