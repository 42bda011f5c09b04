//! Removal and renaming of the sets of a store that several nodes share, while no node runs.

#[cfg(feature = "postgres")]
mod postgres;

use crate::maintenance::drop_set::{DroppedSet, DroppedTopics};
use crate::maintenance::former_sets::{FormerSet, Removal, RenamedSet};
use abreast_core::{LogError, Records};
use abreast_webtypes::Timestamp;
use std::sync::Arc;

/// The sets of a store that several nodes share. A node that continues after its lease has ended cannot record
/// in a removed set.
pub trait SharedSets: Send + Sync {
    /// Checks that no node has a valid lease.
    ///
    /// # Errors
    /// A node runs ([`ErrorKind::Busy`](abreast_core::ErrorKind::Busy)), or the store cannot be read.
    fn check_unused(&self) -> Result<(), LogError>;

    /// The time of the store, which is that of all nodes.
    ///
    /// # Errors
    /// The store cannot be read.
    fn now(&self) -> Result<Timestamp, LogError>;

    /// The small records of the whole store.
    fn records(&self) -> Arc<dyn Records>;

    /// Names of all sets in URLs.
    ///
    /// # Errors
    /// The store cannot be read.
    fn names(&self) -> Result<Vec<String>, LogError>;

    /// The former names of sets that no set has now, in their alphabetical order.
    ///
    /// # Errors
    /// The store cannot be read, or the record is damaged.
    fn former_sets(&self) -> Result<Vec<FormerSet>, LogError>;

    /// Counts the rows of a set, also of a removed set whose rows are not all deleted. `None` if the store does
    /// not have the set.
    ///
    /// # Errors
    /// The store cannot be read.
    fn count_set(&self, slug: &str) -> Result<Option<DroppedSet>, LogError>;

    /// Removes a set in one short transaction, after which its name is a former one. Then
    /// [`Self::finish_removals`] deletes its rows. Does nothing if the store does not have the set.
    ///
    /// # Errors
    /// A node runs, or the store cannot be changed.
    fn remove_set(&self, slug: &str, removal: &Removal) -> Result<(), LogError>;

    /// Names of the removed sets whose rows are not all deleted.
    ///
    /// # Errors
    /// The store cannot be read.
    fn unfinished_removals(&self) -> Result<Vec<String>, LogError>;

    /// Deletes the rows of removed sets in short transactions, until `is_stopped` returns true. Nodes may run. An
    /// interrupted call is continued by the next one.
    ///
    /// # Errors
    /// The store cannot be changed.
    fn finish_removals(&self, is_stopped: &dyn Fn() -> bool) -> Result<(), LogError>;

    /// Gives a set another name; its log, positions and resources are not changed. The old name is then a former
    /// one. Without `now`, nothing is changed.
    ///
    /// # Errors
    /// A node runs, or the store cannot be changed.
    fn rename_set(
        &self,
        names: (&str, &str),
        now: Option<Timestamp>,
    ) -> Result<RenamedSet, LogError>;

    /// Drops the topics with these URLs, with their notifications, targets and verifications; with `dry_run` only
    /// counts them. Subscribers are not notified.
    ///
    /// # Errors
    /// The store cannot be changed.
    fn drop_topics(&self, urls: &[String], dry_run: bool) -> Result<DroppedTopics, LogError>;

    /// Gives topics other URLs, as [`rename_topics`](crate::rename_topics) of a store in a folder. Returns the number of topics.
    ///
    /// # Errors
    /// The store cannot be changed.
    fn rename_topics(&self, urls: &[(String, String)]) -> Result<u64, LogError>;
}
