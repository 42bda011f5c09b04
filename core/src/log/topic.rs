//! Topics: notifications for subscribers, in order.
//!
//! A topic's log is append-only, and a subscriber is one number: the offset of its last
//! notification. The changes in a notification are not stored twice: the notification refers to a
//! range of the set's log, from which the bytes are made on each delivery.

use crate::log::wait;
use crate::{LogError, Position};
use abreast_webtypes::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// A topic's number in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub i64);

/// The number of a notification in its topic: 1, 2, 3 … without gaps; 0 is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub u64);

/// The content of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The changes of the topic's set at positions `after < p <= last`.
    Changes {
        /// Position before the range, which is not included.
        after: Position,
        /// Last position of the range, included.
        last: Position,
    },
    /// Bytes that are delivered unchanged.
    Bytes(Arc<[u8]>),
}

/// A notification as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotification {
    /// Media type of the payload, as in a `Content-Type` header.
    pub media_type: String,
    /// `Link` header values to send in addition to `self` and `hub`, in the syntax of the header;
    /// empty for no values.
    pub links: String,
    /// Payload of the notification: a range of changes, or bytes.
    pub payload: Payload,
}

/// A notification as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Number of the notification in its topic.
    pub offset: Offset,
    /// Time at which the log accepted the notification.
    pub time: Timestamp,
    /// Notification as it was published.
    pub content: NewNotification,
}

/// Called once, from another thread, when a notification is durable or was refused.
pub type PublishDone = Box<dyn FnOnce(Result<Offset, LogError>) + Send>;

/// Append-only logs of notifications, one a topic.
///
/// Calls block; async callers move them to a blocking thread. What implementations promise:
/// - offsets of a topic are 1, 2, 3 … without gaps, in the order of the calls to
///   [`TopicLog::publish_then`];
/// - `done` is called once, with success only when the notification is durable;
/// - a recorded notification is not lost before [`TopicLog::trim`].
pub trait TopicLog: Send + Sync + 'static {
    /// Opens the topic with this URL, and creates a missing topic.
    ///
    /// # Errors
    /// When the store fails.
    fn open_topic(&self, url: &str) -> Result<TopicId, LogError>;

    /// Records a notification and calls `done` when it is durable. Blocks while too much is
    /// waiting, for as long as [`PUBLISH_PATIENCE`] at most; then `done` gets
    /// [`crate::ErrorKind::Busy`].
    fn publish_then(&self, topic: TopicId, notification: NewNotification, done: PublishDone);

    /// The last notification's number. It may read the store, and so block, as every other call
    /// may.
    ///
    /// # Errors
    /// When the store does not contain the topic.
    fn head(&self, topic: TopicId) -> Result<Offset, LogError>;

    /// Notifications after an offset, at most `limit`, in order. Fewer when some were trimmed:
    /// compare the first offset.
    ///
    /// # Errors
    /// When the store fails.
    fn read(
        &self,
        topic: TopicId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<Notification>, LogError>;

    /// The last notification, unless it was trimmed.
    ///
    /// # Errors
    /// When the store fails.
    fn last(&self, topic: TopicId) -> Result<Option<Notification>, LogError> {
        let head = self.head(topic)?;
        Ok(self.read(topic, Offset(head.0.saturating_sub(1)), 1)?.pop())
    }

    /// Drops notifications up to an offset, included. The last one stays.
    ///
    /// # Errors
    /// When the store fails.
    fn trim(&self, topic: TopicId, up_to: Offset) -> Result<(), LogError>;
}

/// How long a call to publish waits for room.
pub const PUBLISH_PATIENCE: Duration = Duration::from_secs(5);

/// Records a notification and waits until it is durable.
///
/// # Errors
/// When the store fails or is too busy.
pub fn publish(
    log: &dyn TopicLog,
    topic: TopicId,
    notification: NewNotification,
) -> Result<Offset, LogError> {
    wait(|done| log.publish_then(topic, notification, done))
}
