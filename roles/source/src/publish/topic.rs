//! Topics for notifications of changes.

use super::set::PublishedSet;
use std::sync::Arc;

/// One topic of a set, to which clients subscribe.
#[derive(Clone, Debug)]
pub struct Topic {
    /// The URL of the topic.
    pub url: String,
    /// The set whose changes are notified.
    pub set: Arc<PublishedSet>,
    /// Unique key for the records of the topic: the name of the set, if each set has one such
    /// topic.
    pub record: String,
    /// Content of the notifications in the topic.
    pub content: TopicContent,
    /// Media type of the notifications.
    pub media_type: &'static str,
    /// Links that are sent with each notification, in addition to hub and topic.
    pub links: String,
}

/// The content from which notifications are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicContent {
    /// A range of the set's log, rendered when the notification is sent.
    Changes,
    /// Documents that are new or different since the last notification.
    Documents,
}

impl TopicContent {
    /// Name of the content in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changes => "change",
            Self::Documents => "framework",
        }
    }
}
