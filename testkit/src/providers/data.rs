//! The entities of a provider, their changes, and documents of them in caches.

use std::collections::BTreeMap;

/// A change in the log of a provider.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) entity: u64,
    pub(super) kind: &'static str,
    /// As documents state it.
    pub(super) time: i64,
    /// By the clock of the publisher, which some times are ahead of.
    pub(super) noted: i64,
    /// The entity that it is now, of a `Move`.
    pub(super) target: u64,
    /// The version that is there after it.
    pub(super) version: u64,
}

impl Change {
    /// Whether an entity is gone after it.
    pub(super) fn is_deletion(&self) -> bool {
        matches!(self.kind, "Delete" | "Remove")
    }

    /// The entities that it is about, each with what became of it, as ResourceSync names that.
    pub(super) fn changed(&self) -> Vec<(u64, &'static str)> {
        match self.kind {
            "Delete" | "Remove" => vec![(self.entity, "deleted")],
            "Move" => vec![(self.entity, "deleted"), (self.target, "created")],
            "Create" | "Add" => vec![(self.entity, "created")],
            _ => vec![(self.entity, "updated")],
        }
    }
}

/// A version of an entity, with the time of the change that made it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    pub(super) number: u64,
    pub(super) time: i64,
}

/// All entities, as a list has them that was made once.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    /// The time of the last change that it includes, and the place behind that.
    pub(super) at: i64,
    pub(super) end: usize,
    /// When it was made.
    pub(super) made: i64,
    pub(super) entities: BTreeMap<u64, Version>,
    /// Entities that were deleted by then, with the times.
    pub(super) deleted: BTreeMap<u64, i64>,
}

/// The state of a provider that a backup has.
#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    /// The version of each entity that is there.
    pub(super) entities: BTreeMap<u64, Version>,
    pub(super) log: Vec<Change>,
    pub(super) listing: Listing,
    /// Changes before this one are in no document any more.
    pub(super) first: usize,
    /// The place of a change whose document is missing.
    pub(super) hole: Option<usize>,
}

/// A document as a cache has it.
#[derive(Clone)]
pub(super) struct Cached {
    pub(super) body: Vec<u8>,
    /// The place in the log up to which it shows changes.
    pub(super) place: usize,
    /// When the list of all entities was made that it is of.
    pub(super) made: i64,
    /// Entries of a page then.
    pub(super) page: usize,
}

/// A Change List: its name, its changes by their places in the log, and whether it is closed.
pub(super) struct ChangeList {
    pub(super) path: String,
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) is_closed: bool,
}
