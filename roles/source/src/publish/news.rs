//! Notifications about documents: a projection reports to the notifier which documents of a topic
//! are new or different.

use abreast_webtypes::Timestamp;

/// Documents that a topic has notified, as JSON that only the projection reads; empty at first.
pub type NotifiedDocuments = serde_json::Map<String, serde_json::Value>;

/// State against which a projection compares documents, and the times of the notification.
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
    /// Time of the topic's last notification, if there was one.
    pub from: Option<Timestamp>,
    /// Time of this notification; later than `from`, even if the clock was set back.
    pub until: Timestamp,
}

/// A notification of new and different documents.
#[derive(Clone, Debug)]
pub struct News {
    /// Bytes of the notification, in the topic's media type.
    pub notification: Vec<u8>,
    /// State to record as `before` of the next notification.
    pub after: NotifiedDocuments,
    /// Whether the notification has a document that only grew.
    pub grown: bool,
}

/// The end of a topic whose set is no longer published.
#[derive(Clone, Debug)]
pub struct EndedTopic {
    /// The URL of the topic.
    pub url: String,
    /// The last notification, which reports the end to subscribers.
    pub notification: Vec<u8>,
    /// Media type of the notification.
    pub media_type: &'static str,
}
