//! The items of a plan, and sums over them.

use super::access::Access;
use super::rows::Row;

/// The action for one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PendingAction {
    /// Fetch the listed bytes and write them to the copy.
    #[default]
    Fetch,
    /// Set the listed time; the bytes are right.
    Touch,
    /// Delete the resource: the Source reported its deletion.
    Delete,
    /// Change nothing. Occurs in noted changes only, never in a plan.
    Leave,
    /// Delete the resource: it left the set, and may exist elsewhere.
    Remove,
    /// Delete the resource: it is missing in the lists. This is a conclusion; the Source reported
    /// the other kinds of deletions.
    Absent,
}

impl PendingAction {
    /// Whether the action removes the resource from the copy.
    pub const fn is_deletion(self) -> bool {
        matches!(self, Self::Delete | Self::Remove | Self::Absent)
    }
}

/// Progress of an item in a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PendingState {
    /// To be done in this run.
    #[default]
    Due,
    /// Failed, refused or postponed; tried again in the next run.
    Failed,
    /// Part of an earlier plan, while a new plan is made.
    Stale,
    /// Waits until the file in the place of its parent folder has moved.
    Conflict,
}

/// One item of a plan: the action for a resource, and its expected properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// URI of the resource, without fragment.
    pub uri: String,
    /// The action that the copy needs.
    pub action: PendingAction,
    /// Last modification as listed, in microseconds.
    pub modified: Option<i64>,
    /// Length as listed, in bytes.
    pub length: Option<u64>,
    /// Digests as listed, in the compact form.
    pub digests: Vec<u8>,
    /// Whether the document listed digests that cannot be verified: with an unknown algorithm or a
    /// wrong length.
    pub unknown: bool,
    /// Time of the change in microseconds.
    pub changed: Option<i64>,
    /// Number of runs in which the item failed. For a deletion, also runs in which it waited
    /// because of other failures.
    pub attempts: u32,
    /// The original address of the resource, as listed: a link in JSON. For a deletion, see
    /// [`Pending::moved_to`].
    pub via: Option<String>,
    /// How to request the resource, if not by its URI alone.
    pub access: Option<Box<Access>>,
    /// Offset of the bytes in the file of planned bytes, if they are there. If `length` is `None`,
    /// offset of the patches to apply instead.
    pub body: Option<u64>,
}

impl Pending {
    /// For a deletion, the new URI of the resource, if it moved.
    pub fn moved_to(&self) -> Option<&str> {
        self.via.as_deref().filter(|_| self.action.is_deletion())
    }

    /// The address to request: the listed one, otherwise the URI.
    pub fn href(&self) -> &str {
        self.access.as_ref().and_then(|access| access.href.as_deref()).unwrap_or(&self.uri)
    }

    /// The media types to ask for.
    pub fn accept(&self) -> Option<&str> {
        self.access.as_ref()?.accept.as_deref()
    }

    /// Whether the response is a description, see [`Access::describes`].
    pub fn describes(&self) -> bool {
        self.access.as_ref().is_some_and(|access| access.describes)
    }
}

/// A deprecated resource, with its replacements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deprecated {
    /// URI of the resource, without fragment.
    pub uri: String,
    /// URIs to use instead, the best first.
    pub replaced_by: Vec<String>,
    /// Time of the change in microseconds, if the document contains one.
    pub time: Option<i64>,
}

/// One item of a plan, with the row of the copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The planned action, with the expected properties.
    pub pending: Pending,
    /// The copy's present row, if it has the resource.
    pub row: Option<Row>,
}

/// Position of a noted change among all changes of its resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeOrder {
    /// Time of the change in microseconds, for the order.
    pub time: i64,
    /// Number of the document, for the order of changes with the same time.
    pub list: i64,
    /// The first and last instant that the change's time may mean, if the document gives one. For a
    /// time that cannot be used, at most the last instant is known, and the first is the smallest
    /// possible.
    pub changed: Option<(i64, i64)>,
    /// Whether the change is not among the changes that were read before, although its time equals
    /// theirs.
    pub is_new: bool,
    /// Whether an earlier run planned the change. It then counts only together with another change
    /// of its resource, or, if it is also new, together with a list.
    pub is_known: bool,
}

/// The newest noted change of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coming {
    /// The expected properties after the change, and the row of the copy.
    pub task: Task,
    /// The first and last instant that the change's time may mean.
    pub changed: Option<(i64, i64)>,
    /// The latest possible time, if only this is known.
    pub until: Option<i64>,
    /// Value of [`ChangeOrder::is_new`] for this change.
    pub is_new: bool,
    /// Value of [`ChangeOrder::is_known`] for this change.
    pub is_known: bool,
}

/// Counts of the pending actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingCounts {
    /// Resources to fetch or touch.
    pub fetches: u64,
    /// Sum of the listed lengths of these resources, in bytes.
    pub bytes: u64,
    /// Number of resources to delete.
    pub deletes: u64,
    /// Items that failed or were postponed.
    pub held: u64,
    /// Items that wait for a parent folder.
    pub conflicts: u64,
}

/// Counts of a plan that is not read completely if it is long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanSummary {
    /// Items that wait for the next step of a run.
    pub due: u64,
    /// Resources whose fetches failed before.
    pub failed: u64,
    /// Deletions that are held back.
    pub held: u64,
    /// Time of the oldest change that is not applied, in microseconds, if the Source lists times.
    pub oldest: Option<i64>,
    /// Whether the plan has more items than were read.
    pub is_cut: bool,
}

/// Counts of changed resources to fetch, without earlier failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangesDue {
    /// Number of resources to fetch.
    pub resources: u64,
    /// Sum of the listed lengths of these resources, in bytes.
    pub bytes: u64,
    /// Time of the oldest change, in microseconds.
    pub oldest: Option<i64>,
}
