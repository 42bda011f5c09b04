//! The topics that the writer has in memory.

use abreast_core::TopicId;
use abreast_webtypes::Timestamp;
use std::collections::HashMap;

/// All topics, as the writer knows them.
pub(crate) type TopicStates = HashMap<TopicId, TopicState>;

/// Where a topic stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TopicState {
    pub(crate) head: u64,
    pub(crate) trimmed: u64,
    pub(crate) bytes: i64,
    /// When the last notification was accepted.
    pub(crate) time: Timestamp,
}
