//! Results of reading changes or a snapshot.

use crate::read::position::{Due, Position};

/// The result of reading changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Followed {
    Unchanged,
    /// The changes are in the plan; whether there were any.
    Planned(bool),
    /// Pushed changes are still missing in the documents.
    Late,
    Gap(Due),
}

/// The result of a comparison with a snapshot.
pub(super) enum Compared {
    /// The snapshot has not changed since it was read.
    Unchanged,
    /// The Source has no snapshot, so only the changes are available. `is_due`: a comparison is due
    /// if there is a snapshot later.
    Absent { is_due: bool },
    Read {
        /// The position after the snapshot, without a time if the time of the snapshot is not
        /// known.
        after: Box<Position>,
        /// Whether the whole snapshot was read.
        is_whole: bool,
    },
}
