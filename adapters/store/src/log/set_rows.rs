//! The rows of a set, as the statements write them.

use crate::log::descriptions;
use crate::log::links;
use crate::log::shards::entry_bytes;
use abreast_core::batch::{Held, Now};
use abreast_core::{ChangeRecord, ContentId, Kind, Position, Resource, State};
use abreast_webtypes::Timestamp;
use std::collections::HashMap;

/// The properties of a resource, with the encoded form of columns that need one.
pub(crate) struct Encoded<'s> {
    pub(crate) state: &'s State,
    /// Address of the stored bytes, if they are stored.
    pub(crate) content: Option<ContentId>,
    pub(crate) digests: Vec<u8>,
    pub(crate) links: Option<String>,
    pub(crate) description: Option<String>,
    /// URIs to use instead of a deprecated resource.
    pub(crate) deprecated: Option<String>,
}

impl<'s> Encoded<'s> {
    pub(crate) fn new(held: Held<'s>, deprecated: Option<&[String]>) -> Self {
        let Held { state, content } = held;
        Self {
            state,
            content,
            digests: state.digests.to_bytes(),
            links: links::write(&state.links),
            description: descriptions::write(state.description.as_deref()),
            deprecated: deprecated.map(descriptions::write_replacements),
        }
    }

    /// Encodes the properties of a resource for its row.
    pub(crate) fn of(state: &'s State) -> Self {
        Self::new(Held { state, content: state.content }, None)
    }

    /// Address of the stored bytes, as a column.
    pub(crate) fn content(&self) -> Option<&[u8]> {
        self.content.as_ref().map(|id| id.as_bytes().as_slice())
    }

    /// Estimated size of the resource's entry in a document, in bytes.
    pub(crate) fn bytes(&self, key: &str) -> u64 {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        entry_bytes(
            key,
            length(&self.state.media_type),
            length(&self.state.encoding),
            self.digests.len(),
            length(&self.links),
        )
    }
}

/// A stored resource.
pub(crate) struct StoredRow {
    pub(crate) resource: Box<Resource>,
    /// Estimated size of the resource's entry in a document, in bytes.
    pub(crate) bytes: u64,
    /// Whether the row cannot be read. Its resource then differs from every other.
    pub(crate) is_damaged: bool,
}

/// The stored rows of some keys.
pub(crate) type StoredRows<'k> = HashMap<&'k str, StoredRow>;

/// One change, as the log stores it.
pub(crate) struct LogRow<'e> {
    pub(crate) position: Position,
    pub(crate) time: Timestamp,
    pub(crate) kind: Kind,
    pub(crate) key: &'e str,
    /// The resource after the change; `None` if it left the set.
    pub(crate) new: Option<&'e Encoded<'e>>,
    /// The description of the removed resource.
    pub(crate) removed: Option<String>,
    /// See [`descriptions::Note`].
    pub(crate) note: Option<String>,
}

impl LogRow<'_> {
    /// Description of the resource, after the change or before its removal.
    pub(crate) fn description(&self) -> Option<&str> {
        self.new.map_or(self.removed.as_deref(), |new| new.description.as_deref())
    }
}

/// How the row of a key is written.
pub(crate) enum RowWrite<'w> {
    Insert(&'w Encoded<'w>, Now<'w>),
    Update(&'w Encoded<'w>, Now<'w>),
    /// Unchanged properties with a new fingerprint or address of the bytes.
    Refresh(Now<'w>),
    Delete,
}

/// The number of a kind of change in the database.
pub(crate) const fn kind_number(kind: Kind) -> i64 {
    match kind {
        Kind::Create => 1,
        Kind::Add => 2,
        Kind::Update => 3,
        Kind::Deprecate => 4,
        Kind::Remove => 5,
        // A new kind of change needs a number here and in the comment of the schema.
        _ => 6,
    }
}

pub(crate) const fn kind_of(number: i64) -> Option<Kind> {
    Some(match number {
        1 => Kind::Create,
        2 => Kind::Add,
        3 => Kind::Update,
        4 => Kind::Deprecate,
        5 => Kind::Remove,
        6 => Kind::Delete,
        _ => return None,
    })
}

/// An empty change, as a buffer for reading.
pub(crate) fn empty_change() -> ChangeRecord {
    ChangeRecord {
        position: Position(0),
        time: Timestamp::default(),
        kind: Kind::Create,
        key: String::new(),
        state: None,
        removed: None,
        former_types: None,
        replaced_by: Vec::new(),
        summary: None,
    }
}
