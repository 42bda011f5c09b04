//! State of a published set in one word, used by `/readyz`, `/metrics`, the API and the pages.

use crate::publish::PublishedSet;
use crate::scan::guard::Held;
use crate::scan::status::WatchState;
use abreast_core::{ChangeLog, LogError};

/// State of one set, as reports and pages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetState {
    /// The set is published, and changes are recorded.
    Ready,
    /// The first scan is running; the set is not published yet.
    Reading,
    /// The first scan ended before it was complete; the set is not published.
    Incomplete,
    /// Deletions wait for a confirmation; all other changes are published.
    Held(Held),
    /// Deletions were confirmed and are being recorded.
    Confirmed(Held),
    /// The folder, files or endpoint cannot be read; published resources remain.
    Missing(String),
    /// Changes of the set cannot be recorded.
    Failed(String),
}

impl SetState {
    /// Every value of [`name`](Self::name), in the order of the variants.
    pub const NAMES: [&str; 7] =
        ["ready", "reading", "incomplete", "held", "confirmed", "missing", "failed"];

    /// Reads the current state of a set.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of(log: &dyn ChangeLog, set: &PublishedSet) -> Result<Self, LogError> {
        let importing = log.head_for_documents(set.id)?.importing;
        let (watch, state) = (&set.watch, set.watch.state());
        if let WatchState::Failed(reason) = state {
            return Ok(Self::Failed(reason));
        }
        if let Err(error) = log.check_available() {
            return Ok(Self::Failed(error.to_string()));
        }
        Ok(match state {
            WatchState::Vanished(reason) => Self::Missing(reason),
            WatchState::Starting | WatchState::Scanning | WatchState::Elsewhere if importing => {
                Self::Reading
            }
            _ if importing => Self::Incomplete,
            _ => match watch.held() {
                Some(held) if watch.is_confirming() => Self::Confirmed(held),
                Some(held) => Self::Held(held),
                None => Self::Ready,
            },
        })
    }

    /// State as one word, for reports and metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Self::Ready => 0,
            Self::Reading => 1,
            Self::Incomplete => 2,
            Self::Held(_) => 3,
            Self::Confirmed(_) => 4,
            Self::Missing(_) => 5,
            Self::Failed(_) => 6,
        }]
    }
}
