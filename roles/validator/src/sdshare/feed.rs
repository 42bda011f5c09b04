//! Feeds of SDShare, as records of the walk.

use crate::report::{Document, FeedFacts};
use crate::walk::node::{Node, Record};
use abreast_sdshare::FeedKind;

/// A feed or snapshot of SDShare that was read.
#[derive(Debug, Default)]
pub(super) struct Feed {
    pub(super) kind: Option<FeedKind>,
    pub(super) is_snapshot: bool,
    pub(super) is_read: bool,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    pub(super) facts: FeedFacts,
    /// Why not all pages of the feed were read.
    pub(super) problem: Option<String>,
}

impl FeedFacts {
    /// Message about an Atom feed that does not belong to SDShare, with the same words as for
    /// copies.
    pub fn as_other_feed(&self) -> String {
        abreast_sdshare::other_feed(&self.title)
    }
}

impl Record for Feed {
    fn report(&self, _node: &Node, document: &mut Document) {
        document.name = match self.kind {
            _ if self.is_snapshot => "SDShare snapshot".to_owned(),
            Some(kind) => format!("SDShare {}", kind.name()),
            None => "Atom feed".to_owned(),
        };
        document.is_source = self.kind.is_some() || self.is_snapshot;
        document.read = self.is_read;
        (document.entries, document.bytes) = (self.entries, self.bytes);
        document.problem.clone_from(&self.problem);
        document.feed = Some(self.facts.clone());
    }
}
