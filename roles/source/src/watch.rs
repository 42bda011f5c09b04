//! A folder that is watched: what changes in it is recorded.

use crate::Private;
use crate::ingest::IngestOptions;
use crate::status::{WatchState, WatchStatus};
use crate::watching::Watching;
use abreast_core::filter::Filter;
use abreast_core::{ChangeLog, SetId};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
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
            hold_deletions: crate::guard::HOLD,
            confirm_deletions: false,
            initial_changes: false,
        }
    }
}

/// A running watch; it is stopped with [`Watch::stop`], or when it is dropped.
pub struct Watch {
    stop: Arc<AtomicBool>,
    status: Arc<WatchStatus>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts watching. The first scan runs in the background; see [`WatchStatus`].
    pub fn start(options: WatchOptions, log: Arc<dyn ChangeLog>, set: SetId) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let status = Arc::new(WatchStatus::default());
        if options.confirm_deletions {
            status.confirm_deletions();
        }
        let watching = Watching::new(options, log, set, Arc::clone(&stop), Arc::clone(&status));
        let thread = thread::Builder::new().name("watch".into()).spawn(move || watching.run());
        if let Err(error) = &thread {
            status.set(WatchState::Vanished(format!("cannot start the watching thread: {error}")));
        }
        Self { stop, status, thread: thread.ok() }
    }

    /// Its state.
    pub fn status(&self) -> &Arc<WatchStatus> {
        &self.status
    }

    /// Begins to stop, without waiting for it.
    pub fn begin_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops after what is being recorded is durable.
    pub fn stop(mut self) {
        self.join();
    }

    fn join(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.join();
    }
}
