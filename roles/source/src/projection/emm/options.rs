//! The options of the feeds of a set.

use crate::publish::PublishedSet;
use std::sync::{Arc, LazyLock};

/// What a set's change feeds state beyond its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedOptions {
    /// The type of resources that are files, such as `Manifest`; by their media types if not given.
    pub object_type: Option<String>,
    /// The predicates of labels, as IRIs; the common ones if empty.
    pub label_predicates: Vec<String>,
}

impl PublishedSet {
    /// What its change feeds state beyond its log.
    pub(crate) fn feeds(&self) -> &FeedOptions {
        static DEFAULT: LazyLock<FeedOptions> = LazyLock::new(FeedOptions::default);
        self.part().map_or(&*DEFAULT, |options: &Arc<FeedOptions>| &**options)
    }
}
