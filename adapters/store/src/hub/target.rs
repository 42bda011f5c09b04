//! Targets of notifications and their progress: types.

use abreast_core::{Offset, TopicId};
use abreast_webtypes::Timestamp;
use std::fmt;
use std::time::Duration;

/// A target's number in its store; never given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId(pub i64);

/// The kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetKind {
    /// A subscriber's callback.
    Subscription,
    /// Another hub, which takes the notification itself.
    FatSubmission,
    /// Another hub, which takes the topic's URL and fetches it.
    FormSubmission,
    /// A node of an XMPP service, to which each notification is published.
    Node,
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

/// A target to be made, or recreated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTarget {
    /// The topic it follows.
    pub topic: TopicId,
    /// Its kind.
    pub kind: TargetKind,
    /// The callback's, the hub's or the node's URL; at most 8 KiB.
    pub address: String,
    /// The key that notifications are signed with, if any; at most 199 bytes.
    pub secret: Option<Secret>,
    /// When it ends; `None` for never.
    pub lease_until: Option<Timestamp>,
    /// The last notification that it is taken to have; `None` for the topic's last. Only for a
    /// target that is new.
    pub cursor: Option<Offset>,
}

/// A target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its number.
    pub id: TargetId,
    /// The topic it follows.
    pub topic: TopicId,
    /// Its kind.
    pub kind: TargetKind,
    /// The callback's or the hub's URL.
    pub address: String,
    /// The key that notifications are signed with, if any.
    pub secret: Option<Secret>,
    /// When it ends; `None` for never.
    pub lease_until: Option<Timestamp>,
    /// The last notification it took, or that was given up.
    pub cursor: Offset,
    /// One more at each renewal and each replay. Progress of another generation is not recorded.
    pub generation: u64,
    /// When it was first made.
    pub created: Timestamp,
    /// Attempts in a row that failed for the notification after the cursor.
    pub attempts: u32,
    /// When the first of them was.
    pub first_failed: Option<Timestamp>,
    /// When the next one may be.
    pub next_at: Option<Timestamp>,
}

/// How one delivery went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The notification.
    pub offset: Offset,
    /// 1 for the first attempt to deliver it.
    pub number: u32,
    /// When it began.
    pub time: Timestamp,
    /// The status that came back, if one did.
    pub status: Option<u16>,
    /// Why it failed, in at most 500 bytes; more is cut off. `None` for a success.
    pub error: Option<String>,
    /// How long it took.
    pub took: Duration,
}

/// Notifications that were given up for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The first notification.
    pub first: Offset,
    /// The last of them; usually the same.
    pub last: Offset,
    /// How many of these: fewer than the range is long when letters were put together.
    pub letters: u64,
    /// Why the last was given up, in at most 500 bytes.
    pub error: String,
    /// When.
    pub time: Timestamp,
}

impl DeadLetter {
    /// One notification.
    pub fn one(offset: Offset, error: impl Into<String>, time: Timestamp) -> Self {
        Self { first: offset, last: offset, letters: 1, error: error.into(), time }
    }

    /// All from one to another, both included.
    pub fn range(first: Offset, last: Offset, error: impl Into<String>, time: Timestamp) -> Self {
        let letters = (last.0 + 1).saturating_sub(first.0);
        Self { first, last, letters, error: error.into(), time }
    }
}

/// How far a target has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The target.
    pub id: TargetId,
    /// Its generation when this was true.
    pub generation: u64,
    /// The last notification it took, or that was given up.
    pub cursor: Offset,
    /// Attempts in a row that failed for the one after.
    pub attempts: u32,
    /// When the first of them was.
    pub first_failed: Option<Timestamp>,
    /// When the next one may be.
    pub next_at: Option<Timestamp>,
    /// The newest attempt, if it is to be kept: the last success and the last eight failures are.
    pub last: Option<Attempt>,
    /// A dead letter, with the cursor moved over it.
    pub dead: Option<DeadLetter>,
}

/// Why is a target no more?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The subscriber asked for it.
    Unsubscribed,
    /// Its time was over.
    LeaseOver,
    /// It answered 410.
    Gone,
    /// The topic is not for this subscriber.
    Denied,
    /// Somebody decided.
    ByHand,
    /// Another hub that notifications are no longer submitted to.
    NotConfigured,
}

/// A target that is no more; the last 10,000 are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedTarget {
    /// Its place among the ended: larger is later.
    pub number: i64,
    /// Which it was.
    pub id: TargetId,
    /// The topic it followed.
    pub topic: TopicId,
    /// Its kind.
    pub kind: TargetKind,
    /// The callback's or the hub's URL.
    pub address: String,
    /// Why it ended.
    pub why: Ending,
    /// The last notification it took.
    pub cursor: Offset,
    /// When it was made.
    pub created: Timestamp,
    /// When it ended.
    pub time: Timestamp,
}
