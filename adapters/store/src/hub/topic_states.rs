//! The topics that the writer caches in memory.

use abreast_core::TopicId;
use abreast_webtypes::Timestamp;
use std::collections::HashMap;

/// All topics, as the writer caches them.
pub(crate) type TopicStates = HashMap<TopicId, TopicState>;

/// The range of a topic's stored notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TopicState {
    pub(crate) head: u64,
    pub(crate) trimmed: u64,
    pub(crate) bytes: i64,
    /// Time at which the last notification was accepted.
    pub(crate) time: Timestamp,
}
