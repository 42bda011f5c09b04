//! One transaction of the hub, and the values that its writer caches.

use super::loaded::Loaded;
use crate::hub::topic_states::{TopicState, TopicStates};
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::params;
use abreast_core::{ErrorKind, LogError, NewNotification, TopicId};
use abreast_webtypes::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio_postgres::Row;

/// The outer result is the database's; the inner result is that of the request.
pub(crate) type Answer<T> = Result<Result<T, LogError>, Failure>;

/// The transaction of a group of requests.
pub(crate) struct HubTransaction<'c> {
    pub(crate) statements: Statements<'c>,
    pub(crate) known: HubState,
    pub(crate) now: Timestamp,
    /// The node whose progress is recorded, if it has a lease.
    pub(crate) node: Option<NodeLease>,
    /// Targets that requests of the transaction are about.
    pub(crate) loaded: Loaded,
    /// Topics whose rows are not written yet.
    pub(crate) touched: BTreeSet<TopicId>,
    /// Notifications whose rows are not written yet.
    pub(crate) published: Vec<Published>,
}

/// A notification whose row is not written yet.
pub(crate) struct Published {
    pub(crate) topic: i64,
    pub(crate) number: i64,
    pub(crate) time: i64,
    pub(crate) content: Arc<NewNotification>,
}

/// The lease of the node that records progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeLease {
    /// The node with this number, whose row is locked.
    Valid(i64),
    /// The lease is over: other nodes deliver to the targets.
    Over,
}

/// The row of the hub, and its topics, as the writer caches them.
#[derive(Default)]
pub(crate) struct HubState {
    pub(crate) revision: i64,
    /// The stamp of the revision before, until the transaction records one.
    pub(crate) stamp: i64,
    pub(crate) topic_count: i64,
    pub(crate) targets: i64,
    pub(crate) verifications: i64,
    pub(crate) last_topic: i64,
    pub(crate) last_target: i64,
    pub(crate) last_verification: i64,
    pub(crate) last_ended: i64,
    pub(crate) topics: TopicStates,
}

/// Locks the row of the hub. `$1` is the name of the writer.
pub(crate) const LOCK_HUB: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
     (SELECT batch FROM abreast.writers WHERE set_id = 0 AND writer = $1), \
     revision, topics, targets, verifications, last_topic, last_target, last_verification, last_ended, stamp \
     FROM abreast.hub WHERE id = 0 FOR UPDATE";
/// Locks the row of the writer, `$1`.
pub(crate) const LOCK_WRITER: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, batch \
     FROM abreast.writers WHERE set_id = 0 AND writer = $1 FOR UPDATE";

impl HubState {
    /// Reads the row that [`LOCK_HUB`] selects.
    pub(crate) fn read(row: &Row, topics: TopicStates) -> Result<Self, Failure> {
        Ok(Self {
            revision: row.try_get(2)?,
            stamp: row.try_get(10)?,
            topic_count: row.try_get(3)?,
            targets: row.try_get(4)?,
            verifications: row.try_get(5)?,
            last_topic: row.try_get(6)?,
            last_target: row.try_get(7)?,
            last_verification: row.try_get(8)?,
            last_ended: row.try_get(9)?,
            topics,
        })
    }
}

impl HubTransaction<'_> {
    /// The state of a topic, which is written at the end of the transaction.
    pub(crate) fn topic_mut(&mut self, topic: TopicId) -> Option<&mut TopicState> {
        let state = self.known.topics.get_mut(&topic)?;
        self.touched.insert(topic);
        Some(state)
    }

    /// Writes the row of the hub, with a new stamp of the revision.
    pub(crate) fn store_hub(&mut self) -> Result<(), Failure> {
        let stamp = stamp(self.now);
        self.known.stamp = stamp;
        let known = &self.known;
        self.statements.write(
            "INSERT INTO abreast.revisions (revision, stamp) VALUES ($1, $2)",
            params![known.revision => INT8, stamp => INT8],
        )?;
        self.statements.write(
            "UPDATE abreast.hub SET revision = $1, topics = $2, targets = $3, verifications = $4, \
             last_topic = $5, last_target = $6, last_verification = $7, last_ended = $8, stamp = $9 WHERE id = 0",
            params![
                known.revision => INT8, known.topic_count => INT8, known.targets => INT8,
                known.verifications => INT8, known.last_topic => INT8, known.last_target => INT8,
                known.last_verification => INT8, known.last_ended => INT8, stamp => INT8,
            ],
        )
    }
}

/// Checks that PostgreSQL can store texts, which cannot have the character U+0000.
pub(crate) fn check_texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<(), LogError> {
    match texts.into_iter().find(|text| text.contains('\0')) {
        None => Ok(()),
        Some(text) => {
            let shown: String = text
                .chars()
                .take(100)
                .map(|one| if one == '\0' { '\u{fffd}' } else { one })
                .collect();
            let message = format!(
                "the text `{shown}` has the character U+0000, which PostgreSQL does not store"
            );
            Err(LogError::new(ErrorKind::Refused, message))
        }
    }
}

/// A random stamp of a revision; without random numbers, its time.
fn stamp(now: Timestamp) -> i64 {
    let mut bytes = [0; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => i64::from_le_bytes(bytes) & i64::MAX,
        Err(_) => now.as_micros(),
    }
}

/// Largest step between the numbers of two topics, targets or verifications.
const STEP_MAX: u16 = 256;

/// The next number after the last one, in a random step.
pub(crate) fn next_number(last: i64) -> i64 {
    let mut bytes = [0; 2];
    // Without random numbers, the steps are 1.
    let random = getrandom::fill(&mut bytes).map_or(0, |()| u16::from_le_bytes(bytes) % STEP_MAX);
    last + 1 + i64::from(random)
}
