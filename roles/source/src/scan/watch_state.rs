//! Phases and failures of a watch.

use serde::{Deserialize, Serialize};

/// State of a watch, for readiness and status pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WatchState {
    /// The watch has not started.
    #[default]
    Starting,
    /// The watch reads the whole folder.
    Scanning,
    /// The watch waits for changes.
    Watching,
    /// The folder cannot be read, with the reason. Published resources remain, and no deletion is
    /// recorded.
    Vanished(String),
    /// The store failed or its disk is full, with the reason. No change is recorded until the store
    /// works again.
    Failed(String),
    /// Another node that shares the store watches the folder, and has not published its status yet, or no
    /// node watches the folder.
    Elsewhere,
    /// The watch has ended, or was never started.
    Stopped,
}

impl WatchState {
    /// The value as one word, for reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Scanning => "scanning",
            Self::Watching => "watching",
            Self::Vanished(_) => "missing",
            Self::Failed(_) => "failed",
            Self::Elsewhere => "elsewhere",
            Self::Stopped => "stopped",
        }
    }
}
