//! Feeds of SDShare, as records of the walk.

use crate::report::facts::FeedFacts;
use abreast_sdshare::FeedKind;

/// A feed or snapshot that was read.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    pub(crate) kind: Option<FeedKind>,
    pub(crate) is_snapshot: bool,
    pub(crate) is_read: bool,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) children: Vec<String>,
    pub(crate) facts: FeedFacts,
    /// Why not all of its pages were read.
    pub(crate) problem: Option<String>,
}

impl Feed {
    pub(crate) fn name(&self) -> String {
        match self.kind {
            _ if self.is_snapshot => "SDShare snapshot".to_owned(),
            Some(kind) => format!("SDShare {}", kind.name()),
            None => "Atom feed".to_owned(),
        }
    }
}
