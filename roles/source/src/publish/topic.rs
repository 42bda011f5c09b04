//! Topics, which notify of changes.

use super::set::PublishedSet;
use std::sync::Arc;

/// One topic of a set.
#[derive(Clone, Debug)]
pub struct Topic {
    /// The URL of the topic.
    pub url: String,
    /// The set whose changes are notified.
    pub set: Arc<PublishedSet>,
    /// The name of its record among those of other topics: the set's name, for one topic of each
    /// set.
    pub record: String,
    /// The content of its notifications.
    pub content: TopicContent,
    /// The media type of its notifications.
    pub media_type: &'static str,
    /// Links that are sent with each notification, besides hub and topic.
    pub links: String,
}

/// The content from which notifications are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicContent {
    /// A range of the set's log, rendered when it is sent.
    Changes,
    /// Documents that are new or different.
    Documents,
}

impl TopicContent {
    /// The name of the content in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changes => "change",
            Self::Documents => "framework",
        }
    }
}
