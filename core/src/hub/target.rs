//! Targets of notifications and their progress.

use crate::{Offset, TopicId};
use abreast_webtypes::Timestamp;
use std::fmt;
use std::time::Duration;

/// Number of a target in its store, which is never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId(pub i64);

/// The protocol by which a target gets notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetKind {
    /// A subscriber's callback [websub §5.1].
    Subscription,
    /// Another hub, which accepts the notification itself.
    FatSubmission,
    /// Another hub, which gets the topic's URL and fetches the topic.
    FormSubmission,
    /// A node of an XMPP service, to which each notification is published.
    Node,
    /// A configured webhook, which gets changes as JSON.
    Webhook,
}

/// A key shared with a subscriber. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub Box<[u8]>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into_boxed_slice())
    }
}

/// A target to be created or renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTarget {
    /// The topic whose notifications the target receives.
    pub topic: TopicId,
    /// The protocol of the target, and the form of its deliveries.
    pub kind: TargetKind,
    /// The callback's, the hub's or the node's URL; at most 8 KiB.
    pub address: String,
    /// The key that notifications are signed with, if any; at most 199 bytes.
    pub secret: Option<Secret>,
    /// The end of the lease; `None` for a target without one.
    pub lease_until: Option<Timestamp>,
    /// Offset of the last notification that the target is assumed to have; `None` for the topic's
    /// last. Ignored when a target is renewed.
    pub cursor: Option<Offset>,
}

/// A receiver of a topic's notifications, with its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The target's number in the store.
    pub id: TargetId,
    /// The topic whose notifications the target receives.
    pub topic: TopicId,
    /// The protocol of the target, and the form of its deliveries.
    pub kind: TargetKind,
    /// The callback's or the hub's URL.
    pub address: String,
    /// The key that notifications are signed with, if any.
    pub secret: Option<Secret>,
    /// The end of the lease; `None` for a target without one.
    pub lease_until: Option<Timestamp>,
    /// Offset of the last notification that was delivered or given up.
    pub cursor: Offset,
    /// Incremented at each renewal and replay. Progress of another generation is not recorded.
    pub generation: u64,
    /// The time of the target's creation; a renewal does not change it.
    pub created: Timestamp,
    /// Attempts in a row that failed for the notification after the cursor.
    pub attempts: u32,
    /// Time of the first failed attempt in the row.
    pub first_failed: Option<Timestamp>,
    /// Earliest time of the next attempt.
    pub next_at: Option<Timestamp>,
}

/// The result of an attempt to deliver a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Offset of the delivered notification in its topic.
    pub offset: Offset,
    /// Number of the attempt for this notification, from 1.
    pub number: u32,
    /// Time at which the delivery started.
    pub time: Timestamp,
    /// Status of the response, if one was received.
    pub status: Option<u16>,
    /// Reason of the failure, cut off after 500 bytes. `None` for a success.
    pub error: Option<String>,
    /// Time from the start to the reply or failure.
    pub took: Duration,
}

/// Notifications that were given up for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Offset of the first notification in the range.
    pub first: Offset,
    /// Offset of the last notification; usually equal to `first`.
    pub last: Offset,
    /// Number of notifications that were given up. Smaller than the range if dead letters were
    /// merged.
    pub letters: u64,
    /// Reason why the last one was given up, in at most 500 bytes.
    pub error: String,
    /// Time at which the last notification was given up.
    pub time: Timestamp,
}

impl DeadLetter {
    /// A dead letter for one notification.
    pub fn one(offset: Offset, error: impl Into<String>, time: Timestamp) -> Self {
        Self { first: offset, last: offset, letters: 1, error: error.into(), time }
    }

    /// A dead letter for a range of notifications, both ends included.
    pub fn range(first: Offset, last: Offset, error: impl Into<String>, time: Timestamp) -> Self {
        let letters = (last.0 + 1).saturating_sub(first.0);
        Self { first, last, letters, error: error.into(), time }
    }
}

/// The progress of a target, to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The target whose progress is recorded.
    pub id: TargetId,
    /// The target's generation to which this progress belongs.
    pub generation: u64,
    /// Offset of the last notification that was delivered or given up.
    pub cursor: Offset,
    /// Failed attempts in a row to deliver the next notification.
    pub attempts: u32,
    /// Time of the first failed attempt in the row.
    pub first_failed: Option<Timestamp>,
    /// Earliest time of the next attempt.
    pub next_at: Option<Timestamp>,
    /// The newest attempt, if it shall be stored: the last success and the last eight failures are.
    pub last: Option<Attempt>,
    /// A dead letter that the cursor has passed.
    pub dead: Option<DeadLetter>,
}

/// The reason for the end of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The subscriber requested an unsubscription [websub §5.1].
    Unsubscribed,
    /// The lease ended without a renewal.
    LeaseOver,
    /// The callback answered with status 410 [websub §7].
    Gone,
    /// The subscriber may not subscribe to the topic [websub §5.2].
    Denied,
    /// An operator of the hub ended it.
    ByHand,
    /// Another hub, a node or a webhook, after its removal from the configuration.
    NotConfigured,
}

/// A target that ended. The store retains the last 10,000.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedTarget {
    /// Position in the list of ended targets: a larger number ended later.
    pub number: i64,
    /// The number that the target had.
    pub id: TargetId,
    /// The topic whose notifications the target received.
    pub topic: TopicId,
    /// The protocol of the target, and the form of its deliveries.
    pub kind: TargetKind,
    /// The callback's or the hub's URL.
    pub address: String,
    /// Reason for the end of the target.
    pub why: Ending,
    /// Offset of the last delivered notification.
    pub cursor: Offset,
    /// Time at which the target was created.
    pub created: Timestamp,
    /// Time at which the target ended.
    pub time: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let new = NewTarget {
            topic: TopicId(1),
            kind: TargetKind::Subscription,
            address: "http://example.org/callback".into(),
            secret: Some(Secret::from(b"hidden".to_vec())),
            lease_until: None,
            cursor: None,
        };
        let shown = format!("{new:?}");
        assert!(!shown.contains("hidden") && !shown.contains("104, 105"), "{shown}");
    }
}
