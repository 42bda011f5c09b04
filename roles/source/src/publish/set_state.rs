//! The state of a published set in one word, the same wherever it is shown: `/readyz`, `/metrics`, the API, the pages.

use crate::publish::PublishedSet;
use crate::scan::guard::Held;
use crate::scan::status::WatchState;
use abreast_core::{ChangeLog, LogError};

/// The state of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetState {
    /// Everything of it is published, and its changes are recorded.
    Ready,
    /// The first reading is running: nothing of it is published yet.
    Reading,
    /// Its first reading ended before it was complete: nothing of it is published.
    Incomplete,
    /// Deletions wait for a confirmation; everything else is published.
    Held(Held),
    /// Deletions were confirmed and are being recorded.
    Confirmed(Held),
    /// Its folder, its files or its endpoint cannot be read; what was published remains.
    Missing(String),
    /// Its changes cannot be recorded.
    Failed(String),
}

impl SetState {
    /// Every value of [`name`](Self::name), in the order of the variants.
    pub const NAMES: [&str; 7] =
        ["ready", "reading", "incomplete", "held", "confirmed", "missing", "failed"];

    /// The state of a set now.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of(log: &dyn ChangeLog, set: &PublishedSet) -> Result<Self, LogError> {
        let importing = log.head(set.id)?.importing;
        let (watch, state) = (&set.watch, set.watch.state());
        if let WatchState::Failed(reason) = state {
            return Ok(Self::Failed(reason));
        }
        if let Err(error) = log.check_available() {
            return Ok(Self::Failed(error.to_string()));
        }
        Ok(match state {
            WatchState::Vanished(reason) => Self::Missing(reason),
            WatchState::Starting | WatchState::Scanning if importing => Self::Reading,
            _ if importing => Self::Incomplete,
            _ => match watch.held() {
                Some(held) if watch.is_confirming() => Self::Confirmed(held),
                Some(held) => Self::Held(held),
                None => Self::Ready,
            },
        })
    }

    /// The state as one word, for reports and metrics.
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
