//! The tables of a set, as a batch reads and writes them: one implementation for each database.

use crate::log::set_rows::{Encoded, LogRow, RowWrite, StoredRows};
use crate::log::shards::{LiveShard, SplitPoint};
use crate::log::version_state::{Dropped, PastChange, References};
use abreast_core::batch::Name;
use abreast_core::{Page, Position};
use abreast_webtypes::Timestamp;
use std::collections::HashMap;

/// Statements about one set, inside the transaction of a batch.
///
/// Each method takes all rows of a part of the batch, so that a database behind a network needs one
/// round trip for each method and not for each row. Written rows are visible to later reads.
pub(crate) trait Tables: VersionTables {
    /// Changes that are decided and written together.
    const PART: usize;

    /// Gives all keys of a part of the batch, before [`Self::rows`] and only if the set records
    /// versions, so that a database can read their versions together.
    fn announce(&mut self, _keys: &[&str]) {}

    /// Reads the rows of keys, which must be in order without duplicates.
    fn rows<'k>(&mut self, keys: &[&'k str]) -> Result<StoredRows<'k>, Self::Error>;

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

    /// Finds the middle of a shard; `None` if a half would be empty.
    fn middle(
        &mut self,
        shard: &LiveShard,
        end: Option<&str>,
    ) -> Result<Option<SplitPoint>, Self::Error>;

    /// Stores a retired shard.
    fn retire(&mut self, shard: &LiveShard, end: Option<&str>) -> Result<(), Self::Error>;
}

/// Statements about the versions of a set, inside the transaction of a batch.
pub(crate) trait VersionTables {
    /// Failure of a statement, after which the transaction is rolled back.
    type Error;

    /// Adds a version, or replaces the version with this time.
    fn add_version(
        &mut self,
        key: &str,
        at: Position,
        time: Timestamp,
        new: Option<&Encoded<'_>>,
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

    /// Changes the numbers of rows that need contents; returns by how many bytes the needed
    /// contents grew.
    fn count_references(&mut self, counted: References) -> Result<i64, Self::Error>;

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
