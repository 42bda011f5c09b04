//! The rows of a set, independent of the store.

use crate::log::descriptions;
use crate::log::links;
use crate::log::shards::{LiveShard, SplitPoint, entry_bytes};
use crate::log::version_state::{Counted, Dropped, PastChange};
use abreast_core::batch::{Held, Name, Now};
use abreast_core::{ContentId, Kind, Page, Position, Resource, State};
use abreast_webtypes::Timestamp;
use std::collections::HashMap;
use std::ops::Deref;

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

/// Estimated size of a resource's entry in a document, in bytes.
pub(crate) fn document_bytes(key: &str, state: &State) -> u64 {
    Encoded::of(state).bytes(key)
}

/// A stored resource.
pub(crate) struct StoredRow<R> {
    pub(crate) resource: R,
    /// Estimated size of the resource's entry in a document, in bytes.
    pub(crate) bytes: u64,
    /// Whether the row cannot be read. Its resource then differs from every other.
    pub(crate) is_damaged: bool,
}

/// The stored rows of some keys.
pub(crate) type StoredRows<'k, R> = HashMap<&'k str, StoredRow<R>>;

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

/// The rows of a set's versions, inside one transaction.
pub(crate) trait VersionTables {
    /// Errors of versions.
    type Error;

    /// Adds a version, or replaces the version with this time.
    fn add_version(
        &mut self,
        key: &str,
        at: Position,
        time: Timestamp,
        new: Option<&Encoded>,
    ) -> Result<(), Self::Error>;
    /// Whether any version of this resource is recorded.
    fn has_versions(&mut self, key: &str) -> Result<bool, Self::Error>;
    /// The content of the version with this time, if there is such a version.
    fn version_content(
        &mut self,
        key: &str,
        time: Timestamp,
    ) -> Result<Option<Dropped>, Self::Error>;
    /// The stored time of the change at a position.
    fn time_of(&mut self, at: Position) -> Result<Option<Timestamp>, Self::Error>;
    /// Changes the number of rows that need these bytes; returns by how many bytes the needed
    /// contents grew.
    fn count_references(&mut self, id: ContentId, counted: Counted) -> Result<i64, Self::Error>;
    /// Changes after a position, oldest first.
    fn changes_after(
        &mut self,
        after: Position,
        limit: usize,
    ) -> Result<Vec<PastChange>, Self::Error>;
    /// The time of a resource's `number`th newest version, counted from 1.
    fn newest(&mut self, key: &str, number: u32) -> Result<Option<Timestamp>, Self::Error>;
    /// Drops a resource's oldest versions from before a time.
    fn drop_before(
        &mut self,
        key: &str,
        time: Timestamp,
        limit: usize,
    ) -> Result<Vec<Dropped>, Self::Error>;
}

/// The rows of a set, inside one transaction.
pub(crate) trait Tables: VersionTables {
    /// A row that was read.
    type Row: Deref<Target = Resource>;

    /// Reads the rows of keys, which must be in order without duplicates.
    fn rows<'k>(&mut self, keys: &[&'k str]) -> Result<StoredRows<'k, Self::Row>, Self::Error>;
    /// Reads the times at which idempotency keys of changes were recorded.
    fn names<'k>(&mut self, names: &[&'k str]) -> Result<HashMap<&'k str, Timestamp>, Self::Error>;
    /// Adds changes to the log.
    fn record(&mut self, changes: &[LogRow<'_>]) -> Result<(), Self::Error>;
    /// Stores closed pages and the open one after them.
    fn close_pages(&mut self, closed: &[Page], open: &Page) -> Result<(), Self::Error>;
    /// Writes the rows of keys, which must be in order without duplicates.
    fn write(&mut self, rows: &[(&str, RowWrite<'_>)]) -> Result<(), Self::Error>;
    /// Records the position at which resources left the set, and deletes this record for returned
    /// resources.
    fn write_tombstones(
        &mut self,
        left: &[(&str, Position)],
        returned: &[&str],
    ) -> Result<(), Self::Error>;
    /// Records the idempotency keys of writers for their changes.
    fn remember(&mut self, names: &[Name<'_>]) -> Result<(), Self::Error>;
    /// Replaces a resource's fingerprint, if the resource is known.
    fn set_witness(&mut self, key: &str, witness: &[u8]) -> Result<(), Self::Error>;
    /// Finds the middle of a shard; `None` if a half would be empty.
    fn middle(
        &mut self,
        shard: &LiveShard,
        end: Option<&str>,
    ) -> Result<Option<SplitPoint>, Self::Error>;
    /// Stores a retired shard.
    fn retire(&mut self, shard: &LiveShard, end: Option<&str>) -> Result<(), Self::Error>;
}
