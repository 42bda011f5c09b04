//! One transaction of the hub, and the values that its writer caches.

use super::topic_states::TopicStates;
use abreast_core::{LogError, TopicId};
use abreast_webtypes::Timestamp;
use rusqlite::Connection;
use std::collections::BTreeSet;

/// The transaction of a request, and the writer's cached values.
pub(crate) struct HubTransaction<'w> {
    pub(crate) connection: &'w Connection,
    pub(crate) known: &'w mut WriterState,
    pub(crate) now: Timestamp,
}

/// Values that the writer caches between transactions.
#[derive(Default)]
pub(crate) struct WriterState {
    pub(crate) topics: TopicStates,
    /// Topics whose rows are not written yet, or whose last offset readers do not see yet.
    pub(crate) touched: BTreeSet<TopicId>,
    pub(crate) verifications: i64,
    pub(crate) dead_letters: i64,
}

/// The outer result is the database's; the inner result is that of the request.
pub(crate) type Answer<T> = rusqlite::Result<Result<T, LogError>>;
