//! Documents of ResourceSync 0.1, as records of the walk.

use crate::fetch::ResponseFacts;
use crate::report::{Document, NO_END};
use crate::walk::node::{FoundBy, Node, Record};
use abreast_webtypes::Timestamp;

/// A document or dump of ResourceSync 0.1 that was read.
#[derive(Debug, Default)]
pub(super) struct Alpha {
    pub(super) name: &'static str,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    pub(super) modified: Option<Timestamp>,
    pub(super) is_change_set: bool,
    /// Whether the document cannot be read to its end.
    pub(super) is_cut: bool,
    /// Error for which copies refuse the document.
    pub(super) refusal: Option<String>,
    /// Whether this is a given dump that was not read yet.
    pub(super) is_dump: bool,
    pub(super) facts: ResponseFacts,
}

impl Record for Alpha {
    fn report(&self, _node: &Node, document: &mut Document) {
        self.name.clone_into(&mut document.name);
        (document.is_source, document.read) = (true, true);
        (document.entries, document.bytes) = (self.entries, self.bytes);
        let no_end = self.is_cut.then(|| NO_END.to_owned());
        document.problem = self.refusal.clone().or(no_end);
        if self.is_change_set {
            document.until = self.modified;
        } else {
            document.at = self.modified;
        }
    }

    fn is_document(&self, _found_by: FoundBy) -> Option<bool> {
        Some(true)
    }

    fn facts(&self) -> Option<&ResponseFacts> {
        Some(&self.facts)
    }
}
