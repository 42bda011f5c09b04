//! Resources, sets of them, and changes to them.

use crate::ContentId;
use abreast_webtypes::{Digests, Link, Timestamp};
use std::fmt;

/// The number of a set in one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub i64);

/// Place of a change in its set's log: 1 for the first, without gaps. 0 stands before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// The position after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of resources that is published together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceSet {
    /// Its number in the store.
    pub id: SetId,
    /// Its name in URLs.
    pub slug: String,
}

/// The description of a resource, for protocols that publish descriptions of entities. Files have
/// none, but for the media type of one that left its set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// IRIs of its types.
    pub types: Vec<String>,
    /// A name for people.
    pub label: Option<String>,
    /// Of a removed resource without types and label: the media type that it had.
    pub media_type: Option<String>,
}

/// The state of a resource's representation, and of the resource itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// When the content last changed, by its keeper's account (HTTP Last-Modified).
    pub modified: Timestamp,
    /// Bytes of content.
    pub length: Option<u64>,
    /// Media type, with parameters if known.
    pub media_type: Option<String>,
    /// Content encoding (`gzip`), when the bytes at the URI are encoded.
    pub encoding: Option<String>,
    /// Digests of the bytes.
    pub digests: Digests,
    /// Related resources.
    pub links: Vec<Link>,
    /// The description of the resource, where a protocol needs it.
    pub description: Option<Box<Description>>,
    /// Where a copy of these bytes is kept, if one is. Never published, and no difference by
    /// itself: a state that differs only here replaces the address, it is no change.
    pub content: Option<ContentId>,
}

/// A resource as the log leaves it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Its key: a reference relative to the set's base URI, or an absolute URI.
    pub key: String,
    /// Its current state.
    pub state: State,
    /// The Source's fingerprint of the origin (size, mtime, inode), to skip unchanged resources.
    /// Never published.
    pub witness: Vec<u8>,
    /// Where it last changed.
    pub position: Position,
    /// The URIs to use instead when it is deprecated, perhaps none; `None` when it is not
    /// deprecated.
    pub deprecated: Option<Vec<String>>,
}

/// The kind of change, in the richest vocabulary of the protocols (Entity Metadata Management's
/// six).
///
/// ResourceSync and SDShare see created, updated and deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// New, and new in the set.
    Create,
    /// Known elsewhere before, new in the set.
    Add,
    /// Content or description changed.
    Update,
    /// Still there, no longer to be used.
    Deprecate,
    /// Left the set, exists elsewhere.
    Remove,
    /// Gone.
    Delete,
}

impl Kind {
    /// Whether the resource remains in the set.
    pub const fn keeps_resource(self) -> bool {
        !matches!(self, Self::Remove | Self::Delete)
    }
}

/// A change to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The resource now has this state: a creation or an update, as the log decides.
    /// A state equal to the current one records nothing. Another state ends a deprecation.
    Put {
        /// The new state.
        state: State,
        /// See [`Resource::witness`].
        witness: Vec<u8>,
    },
    /// As [`Put`](Self::Put), but a resource that is new in the set is recorded as [`Kind::Add`]:
    /// it was known elsewhere.
    Add {
        /// The new state.
        state: State,
        /// See [`Resource::witness`].
        witness: Vec<u8>,
    },
    /// The resource is still there and no longer to be used. What is deprecated already, with the
    /// same replacements and the same state, records nothing; neither does a resource that is not
    /// in the set when no state is given.
    Deprecate {
        /// Its new state, and its witness; `None` keeps both.
        state: Option<(State, Vec<u8>)>,
        /// URIs to use instead, the best first.
        replaced_by: Vec<String>,
    },
    /// The resource left the set and exists elsewhere. Removing what is not there records nothing.
    Remove,
    /// The resource is gone. Deleting what is not there records nothing.
    Delete,
}

/// One change, not yet in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// See [`Resource::key`].
    pub key: String,
    /// The action to record.
    pub action: Action,
    /// A sentence for people about this change.
    pub summary: Option<String>,
    /// A writer's own name for this change: the same one twice records one change. Kept for seven
    /// days.
    pub idempotency_key: Option<String>,
}

impl Change {
    /// A change to a resource, without summary and idempotency key.
    pub fn new(key: impl Into<String>, action: Action) -> Self {
        Self { key: key.into(), action, summary: None, idempotency_key: None }
    }

    /// The resource now has this state.
    pub fn put(key: impl Into<String>, state: State) -> Self {
        Self::new(key, Action::Put { state, witness: Vec::new() })
    }

    /// The resource is new in the set and was known elsewhere before.
    pub fn add(key: impl Into<String>, state: State) -> Self {
        Self::new(key, Action::Add { state, witness: Vec::new() })
    }

    /// The resource is no longer to be used; its state stays.
    pub fn deprecate(key: impl Into<String>, replaced_by: Vec<String>) -> Self {
        Self::new(key, Action::Deprecate { state: None, replaced_by })
    }

    /// The resource left the set.
    pub fn remove(key: impl Into<String>) -> Self {
        Self::new(key, Action::Remove)
    }

    /// The resource is gone.
    pub fn delete(key: impl Into<String>) -> Self {
        Self::new(key, Action::Delete)
    }

    /// With what the Source saw of its origin.
    #[must_use]
    pub fn with_witness(mut self, seen: Vec<u8>) -> Self {
        match &mut self.action {
            Action::Put { witness, .. }
            | Action::Add { witness, .. }
            | Action::Deprecate { state: Some((_, witness)), .. } => *witness = seen,
            Action::Deprecate { state: None, .. } | Action::Remove | Action::Delete => {}
        }
        self
    }

    /// With a sentence for people.
    #[must_use]
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// With a writer's own name for this change.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }
}

/// One change in the log: durable, at its place forever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRecord {
    /// Where in the log.
    pub position: Position,
    /// When; no two changes of a set share a time.
    pub time: Timestamp,
    /// The action.
    pub kind: Kind,
    /// See [`Resource::key`].
    pub key: String,
    /// The state it left, `None` when the resource left the set.
    pub state: Option<State>,
    /// The last state of a removed resource, if known; otherwise it is in the state.
    pub removed: Option<Box<Description>>,
    /// The types before, if this change of a resource that stayed in the set altered them.
    pub former_types: Option<Vec<String>>,
    /// URIs to use instead of a deprecated resource, the best first.
    pub replaced_by: Vec<String>,
    /// A sentence for people about this change.
    pub summary: Option<String>,
}

impl ChangeRecord {
    /// The description of the resource, or its last one if it left the set.
    pub fn description(&self) -> Option<&Description> {
        self.state.as_ref().map_or(self.removed.as_deref(), |state| state.description.as_deref())
    }
}
