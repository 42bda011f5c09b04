//! Numbers and rows about the versions in a set.

use abreast_core::{ContentId, Kind, Position};
use abreast_webtypes::Timestamp;
use std::collections::BTreeMap;

/// The positions up to which each bound of a policy was applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Collector {
    /// The bound on the count to which `counted` applies.
    pub(crate) counted_as: Option<u32>,
    pub(crate) counted: Position,
    pub(crate) aged: Position,
    pub(crate) sized: Position,
}

/// Values about a set's versions between batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Versions {
    /// Whether versions are recorded.
    pub(crate) keep: bool,
    /// The head when versions were recorded for the first time: earlier changes did not supersede a
    /// version.
    pub(crate) begun: Option<Position>,
    /// The head when the recording of versions was enabled again.
    pub(crate) since: Option<Position>,
    /// Bytes of stored contents; equal contents count once.
    pub(crate) kept_bytes: u64,
    pub(crate) collector: Collector,
}

/// The parts of a change that the removal of old versions needs.
pub(crate) struct PastChange {
    pub(crate) position: Position,
    pub(crate) time: Timestamp,
    pub(crate) kind: Kind,
    pub(crate) key: String,
}

/// The content of a dropped version.
pub(crate) type Dropped = Option<ContentId>;

/// The change in the number of rows with a content.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) more: i64,
    /// Length of the bytes, if a row was added.
    pub(crate) length: Option<u64>,
}

/// Changes by a batch to the number of rows for each content. They are written once and in the
/// order of addresses, since the rows are scattered over all pages of the table.
pub(crate) type References = BTreeMap<ContentId, Counted>;

impl Counted {
    /// Applies the change to a row of the table: returns its new count and length, and by how many
    /// bytes the needed contents grew. `None` if the row does not change.
    pub(crate) fn apply(self, before: Option<(i64, u64)>) -> Option<(i64, u64, i64)> {
        let (needed, known) = match before {
            Some(before) => before,
            None => (0, self.length?),
        };
        let after = (needed + self.more).max(0);
        if before.is_some() && after == needed {
            return None;
        }
        let length = if needed == 0 { self.length.unwrap_or(known) } else { known };
        let bytes = |needed: i64, length: u64| if needed > 0 { length as i64 } else { 0 };
        Some((after, length, bytes(after, length) - bytes(needed, known)))
    }
}
