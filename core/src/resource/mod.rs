//! Resources, sets of resources, and changes to resources.

pub(crate) mod content;
pub mod filter;
pub(crate) mod version;

use crate::ContentId;
use abreast_webtypes::{Digests, Label, Link, Timestamp};
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
    /// Number of the set in its store, by which all calls find the set.
    pub id: SetId,
    /// Name of the set in URLs.
    pub slug: String,
}

/// The description of a resource, for protocols that publish descriptions of entities. Files do not
/// have a description, except the media type of a file that left its set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// IRIs of the resource's types, such as classes of an ontology.
    pub types: Vec<String>,
    /// Labels of the resource, for people; the first is for readers without a preferred language.
    pub labels: Vec<Label>,
    /// Media type of a removed resource that had neither types nor label.
    pub media_type: Option<String>,
}

impl Description {
    /// Text of the first label, for readers without a preferred language.
    pub fn label(&self) -> Option<&str> {
        Some(self.labels.first()?.text.as_str())
    }
}

/// The published properties of a resource and of its representation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// When the content last changed, by its keeper's account (HTTP Last-Modified).
    pub modified: Timestamp,
    /// Length of the content in bytes, if known.
    pub length: Option<u64>,
    /// Media type, with parameters if known.
    pub media_type: Option<String>,
    /// Content encoding (`gzip`), when the bytes at the URI are encoded.
    pub encoding: Option<String>,
    /// Digests of the content, in any number of algorithms.
    pub digests: Digests,
    /// Links to related resources, as the Source publishes them.
    pub links: Vec<Link>,
    /// The description of the resource, where a protocol needs it.
    pub description: Option<Box<Description>>,
    /// Address of a stored copy of the content, if the store has a copy. The address is never
    /// published, and a change of the address alone replaces it without a change record.
    pub content: Option<ContentId>,
}

/// A resource as the log leaves it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Key of the resource: a reference relative to the set's base URI, or an absolute URI.
    pub key: String,
    /// Current properties of the resource, as the last change left them.
    pub state: State,
    /// The Source's fingerprint of the origin (size, mtime, inode), to skip unchanged resources.
    /// Never published.
    pub witness: Vec<u8>,
    /// Position of the last change of this resource; 0 in the base.
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
    /// Change of the content or of the description.
    Update,
    /// Still there, no longer to be used.
    Deprecate,
    /// Left the set, exists elsewhere.
    Remove,
    /// Deletion: the resource does not exist any more.
    Delete,
}

impl Kind {
    /// Whether the resource remains in the set.
    pub const fn keeps_resource(self) -> bool {
        !matches!(self, Self::Remove | Self::Delete)
    }

    /// The kind as a word for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "created",
            Self::Add => "added",
            Self::Update => "updated",
            Self::Deprecate => "deprecated",
            Self::Remove => "removed",
            Self::Delete => "deleted",
        }
    }
}

/// A change to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Set the properties of a resource: a creation or an update, as the log decides. Properties
    /// equal to the current ones record nothing. Other properties end a deprecation.
    Put {
        /// New properties of the resource.
        state: State,
        /// New fingerprint, as in [`Resource::witness`].
        witness: Vec<u8>,
    },
    /// As [`Put`](Self::Put), but a resource that is new in the set is recorded as [`Kind::Add`]:
    /// it was known elsewhere.
    Add {
        /// New properties of the resource.
        state: State,
        /// New fingerprint, as in [`Resource::witness`].
        witness: Vec<u8>,
    },
    /// Discourage the use of a resource that still exists. An equal deprecation, with the same
    /// replacements and properties, records nothing. A resource outside the set records nothing
    /// unless properties are given.
    Deprecate {
        /// New properties and fingerprint; `None` leaves both unchanged.
        state: Option<(State, Vec<u8>)>,
        /// URIs to use instead, the best first.
        replaced_by: Vec<String>,
    },
    /// Remove a resource that exists elsewhere from the set. An absent resource records nothing.
    Remove,
    /// Delete a resource that does not exist any more. An absent resource records nothing.
    Delete,
}

/// One change, not yet in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Key of the resource, as in [`Resource::key`].
    pub key: String,
    /// Action that the log records, if the action has an effect.
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

    /// A change that sets the properties of a resource, without a fingerprint.
    pub fn put(key: impl Into<String>, state: State) -> Self {
        Self::new(key, Action::Put { state, witness: Vec::new() })
    }

    /// The resource is new in the set and was known elsewhere before.
    pub fn add(key: impl Into<String>, state: State) -> Self {
        Self::new(key, Action::Add { state, witness: Vec::new() })
    }

    /// A change that deprecates a resource and leaves its properties unchanged.
    ///
    /// # Examples
    /// ```
    /// use abreast_core::{Action, Change};
    ///
    /// let change = Change::deprecate("subjects/phlogiston", vec!["subjects/oxygen".to_owned()])
    ///     .with_summary("Replaced in the edition of 2026");
    /// let Action::Deprecate { state: None, replaced_by } = &change.action else {
    ///     unreachable!("the properties do not change")
    /// };
    /// assert_eq!(replaced_by, &["subjects/oxygen"]);
    /// ```
    pub fn deprecate(key: impl Into<String>, replaced_by: Vec<String>) -> Self {
        Self::new(key, Action::Deprecate { state: None, replaced_by })
    }

    /// The resource left the set.
    pub fn remove(key: impl Into<String>) -> Self {
        Self::new(key, Action::Remove)
    }

    /// A change that deletes a resource, which does not exist any more.
    pub fn delete(key: impl Into<String>) -> Self {
        Self::new(key, Action::Delete)
    }

    /// Adds the Source's fingerprint of the origin, if the action has one.
    ///
    /// # Examples
    /// ```
    /// use abreast_core::{Action, Change, State};
    ///
    /// // Bytes that differ whenever the file differs, such as its size and its modification time.
    /// let seen = b"512 1772355600".to_vec();
    /// let change = Change::put("letters/1843.xml", State::default()).with_witness(seen.clone());
    /// assert!(matches!(change.action, Action::Put { witness, .. } if witness == seen));
    /// ```
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
    /// Position of the change in the log.
    pub position: Position,
    /// When; no two changes of a set share a time.
    pub time: Timestamp,
    /// Kind of the change, as the log decided.
    pub kind: Kind,
    /// Key of the resource, as in [`Resource::key`].
    pub key: String,
    /// Properties after the change, `None` when the resource left the set.
    pub state: Option<State>,
    /// Last known description of a removed resource; other changes have the description in their
    /// properties.
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
    ///
    /// # Examples
    /// ```
    /// use abreast_core::{ChangeRecord, Description, Kind, Position};
    /// use abreast_webtypes::{Label, Timestamp};
    ///
    /// let labels = vec![Label::plain("Phlogiston")];
    /// let record = ChangeRecord {
    ///     position: Position(42),
    ///     time: Timestamp::from_seconds(1_772_355_600),
    ///     kind: Kind::Delete,
    ///     key: "subjects/phlogiston".to_owned(),
    ///     state: None,
    ///     removed: Some(Box::new(Description { labels, ..Description::default() })),
    ///     former_types: None,
    ///     replaced_by: Vec::new(),
    ///     summary: None,
    /// };
    /// let last = record.description().and_then(|description| description.label());
    /// assert_eq!(last, Some("Phlogiston"));
    /// ```
    pub fn description(&self) -> Option<&Description> {
        self.state.as_ref().map_or(self.removed.as_deref(), |state| state.description.as_deref())
    }
}
