//! A topic of a hub's store.

use crate::{Offset, TopicId};
use abreast_webtypes::Timestamp;

/// A topic, and the range of its stored notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The topic's number in the store.
    pub id: TopicId,
    /// The URL that subscribers use [websub §4].
    pub url: String,
    /// Time at which the topic was created.
    pub created: Timestamp,
    /// Offset of the last notification; 0 before the first.
    pub head: Offset,
    /// Offset of the last notification that was dropped; 0 if none was.
    pub trimmed: Offset,
    /// Bytes in the bodies of the stored notifications.
    pub bytes: u64,
}
