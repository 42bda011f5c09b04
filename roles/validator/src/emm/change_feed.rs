//! Change feeds in Activity Streams, as records of the walk.

use crate::report::facts::ChangeFeedFacts;

/// A document of a change feed that was read; an Entry Point with its pages.
#[derive(Debug, Default)]
pub(crate) struct ChangeFeed {
    pub(crate) name: String,
    pub(crate) is_source: bool,
    pub(crate) is_entry_point: bool,
    pub(crate) is_read: bool,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) children: Vec<String>,
    pub(crate) facts: ChangeFeedFacts,
    /// Why not all of its pages were read.
    pub(crate) problem: Option<String>,
}
