//! Change feeds in Activity Streams, as records of the walk.

use crate::report::{ChangeFeedFacts, Document};
use crate::walk::node::{Node, Record};

/// A document of a change feed that was read, or an Entry Point with its pages.
#[derive(Debug, Default)]
pub(super) struct ChangeFeed {
    pub(super) name: String,
    pub(super) is_source: bool,
    pub(super) is_entry_point: bool,
    pub(super) is_read: bool,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    pub(super) facts: ChangeFeedFacts,
    /// Why not all pages of the feed were read.
    pub(super) problem: Option<String>,
}

impl Record for ChangeFeed {
    fn report(&self, _node: &Node, document: &mut Document) {
        document.name.clone_from(&self.name);
        (document.is_source, document.read) = (self.is_source, self.is_read);
        (document.entries, document.bytes) = (self.entries, self.bytes);
        document.problem.clone_from(&self.problem);
        document.changes = Some(self.facts.clone()).filter(|_| self.is_source);
    }

    fn counts_once(&self) -> bool {
        true
    }
}
