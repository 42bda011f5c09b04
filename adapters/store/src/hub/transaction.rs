//! One transaction of the hub, and the state that its writer caches.

use super::topic_states::TopicStates;
use abreast_core::{LogError, TopicId};
use abreast_webtypes::Timestamp;
use rusqlite::Connection;
use std::collections::BTreeSet;

/// The transaction of a request, and the cached state.
pub(crate) struct HubTransaction<'w> {
    pub(crate) connection: &'w Connection,
    pub(crate) known: &'w mut WriterState,
    pub(crate) now: Timestamp,
}

/// State cached by the writer.
#[derive(Default)]
pub(crate) struct WriterState {
    pub(crate) topics: TopicStates,
    /// Topics whose rows are out of date, or whose heads readers do not see yet.
    pub(crate) touched: BTreeSet<TopicId>,
    pub(crate) verifications: i64,
    pub(crate) dead_letters: i64,
}

/// The result of a request: of the store, and if that did not fail, of the request.
pub(crate) type Answer<T> = rusqlite::Result<Result<T, LogError>>;
