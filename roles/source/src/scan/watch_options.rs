//! Options of a watch, with defaults.

use super::guard::HOLD;
use super::options::IngestOptions;
use crate::names::private::Private;
use abreast_core::Lease;
use abreast_core::filter::Filter;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options of a watch on a folder.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// Path of the folder to publish and watch.
    pub folder: PathBuf,
    /// Options for reading and recording files.
    pub ingest: IngestOptions,
    /// Time without events after which a path is read.
    pub debounce: Duration,
    /// Whether a file is read without this delay after a process closed it or moved it here.
    pub at_once: bool,
    /// Interval between full scans; zero for only the first scan.
    pub rescan: Duration,
    /// Interval between scans that also read files with unchanged metadata; zero to disable.
    pub reread: Duration,
    /// Whether to use inotify. Without events only scans find changes, as on network file systems.
    pub events: bool,
    /// Whether to follow relative symbolic links to published files and folders in the same folder.
    pub follow_links: bool,
    /// Filter that selects the published files.
    pub filter: Arc<Filter>,
    /// Folders that are never published.
    pub private: Private,
    /// How long deletions are held if they exceed the limits of the guard ([`crate::Deletions`]);
    /// zero to record all deletions.
    pub hold_deletions: Duration,
    /// Whether to delete all resources whose files are missing at the start, without the guard.
    pub confirm_deletions: bool,
    /// Whether to record the first resources of a new set as changes.
    pub initial_changes: bool,
    /// The lease of the watch, if several nodes share the store.
    pub lease: Lease,
}

impl WatchOptions {
    /// Creates options with defaults: finished files are read immediately and other files after 200
    /// ms, a full scan runs each hour, events are used, and deletions are held for a week.
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
            lease: Lease::always(),
        }
    }
}
