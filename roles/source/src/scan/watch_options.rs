//! The options of a watch.

use super::guard::HOLD;
use super::options::IngestOptions;
use crate::names::private::Private;
use abreast_core::filter::Filter;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The options of a watch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The folder.
    pub folder: PathBuf,
    /// The options for reading and recording files.
    pub ingest: IngestOptions,
    /// A path is read when it was quiet for this long.
    pub debounce: Duration,
    /// A file that its writer closed, or that was moved here, is read at once instead.
    pub at_once: bool,
    /// Time between full scans; zero for none but the first.
    pub rescan: Duration,
    /// Time between scans that read every file, also those that seem unchanged; zero for none.
    pub reread: Duration,
    /// Whether inotify is used. Without it only scans find changes (network file systems).
    pub events: bool,
    /// Whether relative symbolic links to published files and folders beneath the folder are
    /// followed.
    pub follow_links: bool,
    /// The rules that select the published files.
    pub filter: Arc<Filter>,
    /// Folders that are never published.
    pub private: Private,
    /// How long deletions are held that are more than the guard allows ([`crate::Deletions`]); zero
    /// for not at all.
    pub hold_deletions: Duration,
    /// The files that are missing at the start were removed on purpose.
    pub confirm_deletions: bool,
    /// What a new set has at first is recorded as changes.
    pub initial_changes: bool,
}

impl WatchOptions {
    /// The defaults for a folder: finished files at once, others after 200 ms, a full scan each
    /// hour, events used, deletions held for a week.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            ingest: IngestOptions::default(),
            debounce: Duration::from_millis(200),
            at_once: true,
            rescan: Duration::from_secs(3_600),
            reread: Duration::ZERO,
            events: true,
            follow_links: false,
            filter: Arc::default(),
            private: Private::default(),
            hold_deletions: HOLD,
            confirm_deletions: false,
            initial_changes: false,
        }
    }
}
