//! Short descriptions of a hub's store and its deliveries, for reports and limits.

use abreast_webtypes::Timestamp;

/// Deliveries to the targets of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSummary {
    /// The URL of the topic.
    pub url: String,
    /// Number of notifications so far.
    pub head: u64,
    /// Number of targets of the topic.
    pub targets: u64,
    /// Targets to which the last attempt failed.
    pub failing: u64,
    /// Targets that lack a notification.
    pub behind: u64,
    /// Notifications that the target furthest behind lacks.
    pub lag: u64,
    /// The time of the oldest notification that a target lacks.
    pub oldest: Option<Timestamp>,
}

/// A target to which the last attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingTarget {
    /// The target's number in the store.
    pub id: i64,
    /// The URL of the callback or hub.
    pub address: String,
    /// The URL of the topic.
    pub topic: String,
    /// Failed attempts in a row.
    pub attempts: u64,
    /// The time of the first of these attempts.
    pub since: Option<Timestamp>,
    /// The reason of the last failure.
    pub error: Option<String>,
}

/// The deliveries of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubSummary {
    /// The topics with at least one target.
    pub topics: Vec<TopicSummary>,
    /// Number of topics, also without targets.
    pub topic_count: u64,
    /// Number of targets of all topics.
    pub targets: u64,
    /// Number of targets to which the last attempt failed.
    pub failing: u64,
    /// Some of these targets: those that have failed longest.
    pub failing_targets: Vec<FailingTarget>,
    /// Ranges of notifications that were given up.
    pub dead_letters: u64,
    /// Subscriptions that ended because the subscriber did not answer, answered that it is gone, or
    /// did not renew its lease, since the given time.
    pub dead_subscriptions: u64,
}

/// Numbers of rows and bytes in a hub's store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the database's file; 0 if the store is not a file.
    pub file_bytes: u64,
    /// Bytes of the file that are free for new rows; 0 if the store is not a file.
    pub free_bytes: u64,
    /// Bytes of the write-ahead log's file; 0 if the store is not a file.
    pub log_bytes: u64,
    /// Bytes in the bodies of notifications.
    pub body_bytes: u64,
    /// Number of topics in the store.
    pub topics: u64,
    /// Notifications that are not trimmed yet.
    pub notifications: u64,
    /// Number of targets of all topics.
    pub targets: u64,
    /// Verifications that are not settled.
    pub verifications: u64,
    /// Dead letters; merged ranges count once.
    pub dead_letters: u64,
}
