//! A provider, and its state.

use super::adversity::Faults;
use super::data::{Cached, Data};
use super::rendering::Rendering;
use abreast_core::testing::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// How documents are validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validators {
    None,
    Etag,
    LastModified,
    Both,
}

/// A provider of a collection.
pub struct Provider {
    /// How it renders the collection.
    pub rendering: Rendering,
    /// What goes wrong.
    pub faults: Faults,
    pub(super) base: String,
    pub(super) random: Random,
    pub(super) data: Data,
    pub(super) backup: Option<Data>,
    /// Changes that the documents have already.
    pub(super) published: usize,
    pub(super) now: i64,
    /// How much the clock of the changes is ahead of that of the answers.
    pub(super) ahead: i64,
    /// The number of entries of a page has changed since the last run.
    pub(super) is_resized: bool,
    /// Changes that may still happen between the requests of a run.
    pub(super) shifts: usize,
    /// The status of documents that are not there.
    pub(super) gone: u16,
    /// Entries of a page.
    pub(super) page: usize,
    pub(super) versions: u64,
    pub(super) validators: Validators,
    /// Since when each version of a document is there, by path and fingerprint.
    pub(super) changed: BTreeMap<(String, u64), i64>,
    pub(super) unreachable: BTreeSet<u64>,
    /// Chooses the documents that cannot be read for a time.
    pub(super) lost: Option<u64>,
    /// The entry document as caches have it.
    pub(super) cached_entry: Option<Cached>,
    /// Other documents as caches have them.
    pub(super) cached: BTreeMap<String, Cached>,
    /// The last such place of all documents of a run, and whether any of them had changes.
    pub(super) shown: (usize, bool),
    /// The time of the feed on the page that was read last.
    pub(super) feed_time: Option<String>,
    /// Nothing goes wrong, and nothing changes any more.
    pub(super) is_quiet: bool,
    /// Entities that were ever deleted.
    pub(super) deleted: BTreeSet<u64>,
    /// The newest change on each page, by the fingerprint of that.
    pub(super) on_pages: BTreeMap<u64, usize>,
    /// Changes that were on any page which the consumer received, and on those that it keeps.
    pub(super) served: usize,
    pub(super) kept: usize,
    /// Entities that were lost when the server was restored, of which no document says anything.
    pub(super) forgotten: BTreeSet<u64>,
    /// Entities whose last change lies between a list of all and the oldest change that was listed when a copy began, and the
    /// end of that list.
    pub(super) missed: BTreeSet<u64>,
    pub(super) missed_behind: usize,
}

/// Whether a document is a list of statements: nothing in it shows of which time it is, nor that others are missing behind
/// a whole one.
pub(super) fn is_statements(path: &str) -> bool {
    path == "/snapshot" || path.starts_with("/chunk/")
}

pub(super) fn hash_of(bytes: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
