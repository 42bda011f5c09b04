//! A hub's data in JSON. Secrets are left out; `signed` shows whether there is one.

use abreast_core::hub::{
    Attempt, DeadLetter, EndedTarget, Ending, HubStore, Target, TargetKind, Topic,
};
use abreast_core::{LogError, Offset};
use serde::Serialize;

/// Most dead letters in a response.
const DEAD_LETTERS: usize = 100;

/// A topic of the hub, in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct TopicAnswer {
    /// The topic's number in the store.
    pub id: i64,
    /// The URL that subscribers use.
    pub url: String,
    /// Time at which the topic was created.
    pub created: String,
    /// Offset of the last notification; 0 if none was published.
    pub head: u64,
    /// Offset of the last notification that was dropped.
    pub trimmed: u64,
    /// Bytes in the bodies of the stored notifications.
    pub bytes: u64,
}

impl From<Topic> for TopicAnswer {
    fn from(topic: Topic) -> Self {
        Self {
            id: topic.id.0,
            url: topic.url,
            created: topic.created.to_string(),
            head: topic.head.0,
            trimmed: topic.trimmed.0,
            bytes: topic.bytes,
        }
    }
}

/// A target and its progress.
#[derive(Clone, Debug, Serialize)]
pub struct TargetAnswer {
    /// The target's number in the store.
    pub id: i64,
    /// URL of the topic that the target follows.
    pub topic: String,
    /// `subscription`, `webhook` or `node`, or the kind of notifications to another hub: `content` or
    /// `form`.
    pub kind: &'static str,
    /// URL of the callback or of the hub.
    pub address: String,
    /// Whether deliveries are signed with a secret.
    pub signed: bool,
    /// Progress: `current`, `behind` or `failing`.
    pub state: &'static str,
    /// End of the lease; absent for a target without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<String>,
    /// Offset of the last notification that was delivered or given up.
    pub cursor: u64,
    /// Offset of the topic's last notification.
    pub head: u64,
    /// Failed attempts in a row to deliver the next notification.
    pub attempts: u32,
    /// Time of the first of these attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_failed: Option<String>,
    /// Earliest time of the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<String>,
    /// Reason of the last failure; absent unless the target is failing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Time at which the target was created.
    pub created: String,
}

impl TargetAnswer {
    /// A target, with the position of its topic.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read(store: &dyn HubStore, target: Target) -> Result<Self, LogError> {
        let topic = store.topic(target.topic)?;
        let (url, head) =
            topic.map_or_else(|| (String::new(), target.cursor), |topic| (topic.url, topic.head));
        Self::of(store, target, &url, head)
    }

    /// A target of a topic whose last notification is `head`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn of(
        store: &dyn HubStore,
        target: Target,
        topic: &str,
        head: Offset,
    ) -> Result<Self, LogError> {
        let (id, is_failing) = (target.id, target.attempts > 0);
        let mut answer = Self::new(target, topic, head);
        if is_failing {
            answer.error = store.attempts(id)?.into_iter().find_map(|attempt| attempt.error);
        }
        Ok(answer)
    }

    fn new(target: Target, topic: &str, head: Offset) -> Self {
        Self {
            id: target.id.0,
            topic: topic.to_owned(),
            kind: kind_of(target.kind),
            address: target.address,
            signed: target.secret.is_some() || target.kind == TargetKind::Webhook,
            state: if target.attempts > 0 {
                "failing"
            } else if target.cursor < head {
                "behind"
            } else {
                "current"
            },
            lease_until: target.lease_until.map(|time| time.to_string()),
            cursor: target.cursor.0,
            head: head.0,
            attempts: target.attempts,
            first_failed: target.first_failed.map(|time| time.to_string()),
            next_at: target.next_at.map(|time| time.to_string()),
            error: None,
            created: target.created.to_string(),
        }
    }
}

/// A target with its last attempts and dead letters.
#[derive(Clone, Debug, Serialize)]
pub struct TargetDetails {
    /// The target with its progress.
    #[serde(flatten)]
    pub target: TargetAnswer,
    /// The last success and the last failures, the newest first.
    pub last_attempts: Vec<AttemptAnswer>,
    /// Notifications that were given up, by offset.
    pub dead_letters: Vec<DeadAnswer>,
}

impl TargetDetails {
    /// Reads a target with its attempts and dead letters: the first hundred after the offset
    /// `dead_after`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read(
        store: &dyn HubStore,
        target: Target,
        dead_after: Offset,
    ) -> Result<Self, LogError> {
        let id = target.id;
        Ok(Self {
            target: TargetAnswer::read(store, target)?,
            last_attempts: store.attempts(id)?.into_iter().map(Into::into).collect(),
            dead_letters: store
                .dead_letters(id, dead_after, DEAD_LETTERS)?
                .into_iter()
                .map(Into::into)
                .collect(),
        })
    }
}

/// The result of an attempt to deliver a notification.
#[derive(Clone, Debug, Serialize)]
pub struct AttemptAnswer {
    /// Offset of the delivered notification.
    pub offset: u64,
    /// Number of the attempt for this notification, from 1.
    pub number: u32,
    /// Time at which the attempt started.
    pub time: String,
    /// Status of the response; absent if no response was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Reason of the failure; absent for a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Duration of the attempt in milliseconds.
    pub took_ms: u64,
}

impl From<Attempt> for AttemptAnswer {
    fn from(attempt: Attempt) -> Self {
        Self {
            offset: attempt.offset.0,
            number: attempt.number,
            time: attempt.time.to_string(),
            status: attempt.status,
            error: attempt.error,
            took_ms: u64::try_from(attempt.took.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Notifications that were given up.
#[derive(Clone, Debug, Serialize)]
pub struct DeadAnswer {
    /// Offset of the first notification.
    pub first: u64,
    /// Offset of the last notification.
    pub last: u64,
    /// Number of notifications in the range that were given up.
    pub letters: u64,
    /// Reason why the last one was given up.
    pub error: String,
    /// Time at which the last one was given up.
    pub time: String,
}

impl From<DeadLetter> for DeadAnswer {
    fn from(dead: DeadLetter) -> Self {
        Self {
            first: dead.first.0,
            last: dead.last.0,
            letters: dead.letters,
            error: dead.error,
            time: dead.time.to_string(),
        }
    }
}

/// A target that ended, in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct EndedAnswer {
    /// The number that the target had.
    pub id: i64,
    /// The topic's URL; empty if the topic was removed too.
    pub topic: String,
    /// As in [`TargetAnswer::kind`]: the form of deliveries.
    pub kind: &'static str,
    /// URL of the callback or of the hub.
    pub address: String,
    /// Reason of the end: `unsubscribed`, `lease over`, `gone`, `denied`, `by hand` or
    /// `not configured`.
    pub why: &'static str,
    /// Offset of the last notification that was delivered or given up.
    pub cursor: u64,
    /// Time at which the target ended.
    pub time: String,
}

impl EndedAnswer {
    /// Converts an ended target, with the URL of its topic.
    pub fn new(ended: EndedTarget, topic: String) -> Self {
        Self {
            id: ended.id.0,
            topic,
            kind: kind_of(ended.kind),
            address: ended.address,
            why: why(ended.why),
            cursor: ended.cursor.0,
            time: ended.time.to_string(),
        }
    }
}

const fn kind_of(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Subscription => "subscription",
        TargetKind::FatSubmission => "content",
        TargetKind::FormSubmission => "form",
        TargetKind::Node => "node",
        TargetKind::Webhook => "webhook",
    }
}

const fn why(ending: Ending) -> &'static str {
    match ending {
        Ending::Unsubscribed => "unsubscribed",
        Ending::LeaseOver => "lease over",
        Ending::Gone => "gone",
        Ending::Denied => "denied",
        Ending::ByHand => "by hand",
        Ending::NotConfigured => "not configured",
    }
}
