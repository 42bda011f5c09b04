//! What reading changes or a snapshot leads to.

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
    /// It is as it was read before.
    Unchanged,
    /// There is none, so that the changes are all there is; whether it is due when there is one.
    Absent { is_due: bool },
    Read {
        /// The position after it; without a time where the time of the snapshot is not known.
        after: Box<Position>,
        /// The whole snapshot was read.
        is_whole: bool,
    },
}
