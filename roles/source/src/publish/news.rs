//! News of documents: which documents of a topic are new or different, as a projection reports them
//! to the notifier.

use abreast_webtypes::Timestamp;

/// The documents that a topic has notified, as JSON that only the projection reads; empty at first.
pub type NotifiedDocuments = serde_json::Map<String, serde_json::Value>;

/// The state against which a projection compares its documents, and the times of the notification.
#[derive(Clone, Copy, Debug)]
pub struct NewsRequest<'a> {
    /// The documents notified before in this topic.
    pub before: &'a NotifiedDocuments,
    /// Whether no topic has notified any document before.
    pub first: bool,
    /// Whether a document that only grew may be notified now.
    pub growth: bool,
    /// The current time, by the clock of the publisher.
    pub now: Timestamp,
    /// When the topic's last notification was made, if there was one.
    pub from: Option<Timestamp>,
    /// When this notification is made: later than `from`, whatever the clock does.
    pub until: Timestamp,
}

/// A notification of new and different documents.
#[derive(Clone, Debug)]
pub struct News {
    /// Its bytes, of the topic's media type.
    pub notification: Vec<u8>,
    /// The documents notified, once this notification is recorded.
    pub after: NotifiedDocuments,
    /// Whether a document that only grew is among them.
    pub grown: bool,
}

/// The end of a topic whose set is no longer published.
#[derive(Clone, Debug)]
pub struct EndedTopic {
    /// The URL of the topic.
    pub url: String,
    /// The last notification, which reports the end to subscribers.
    pub notification: Vec<u8>,
    /// The media type of the notification.
    pub media_type: &'static str,
}
