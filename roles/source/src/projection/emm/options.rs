//! Options of the change feeds of a set.

use crate::publish::PublishedSet;
use std::sync::{Arc, LazyLock};

/// Data of a set's change feeds that is not in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedOptions {
    /// Type of resources that are files, such as `Manifest`; by default derived from the media
    /// type.
    pub object_type: Option<String>,
    /// IRIs of predicates for labels; if empty, common predicates are used.
    pub label_predicates: Vec<String>,
}

impl PublishedSet {
    /// Options of the set's change feeds.
    pub(crate) fn feeds(&self) -> &FeedOptions {
        static DEFAULT: LazyLock<FeedOptions> = LazyLock::new(FeedOptions::default);
        self.part().map_or(&*DEFAULT, |options: &Arc<FeedOptions>| &**options)
    }
}
