//! Handle of a watch, which records the changes of a folder.

pub use super::watch_options::WatchOptions;

use crate::scan::leased::run_while_held;
use crate::scan::status::{WatchState, WatchStatus};
use crate::scan::watching::Watching;
use abreast_core::{ChangeLog, SetId, start_thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A running watch. [`Watch::stop`] stops the watch; dropping the value also stops it.
pub struct Watch {
    stop: Arc<AtomicBool>,
    status: Arc<WatchStatus>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts a watch. The first scan runs in the background; see [`WatchStatus`] for its progress.
    pub fn start(options: WatchOptions, log: Arc<dyn ChangeLog>, set: SetId) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let status = Arc::new(WatchStatus::default());
        if options.confirm_deletions {
            status.confirm_deletions();
        }
        let (own_status, own_stop) = (Arc::clone(&status), Arc::clone(&stop));
        let run = move || {
            run_while_held(&options.lease, (&log, set), &own_status, &own_stop, |ending, log| {
                let (stop, status) = (Arc::clone(ending), Arc::clone(&own_status));
                Watching::new(options.clone(), log, set, stop, status).run();
            });
        };
        let thread = start_thread("watch", run);
        if let Err(error) = &thread {
            status.set(WatchState::Vanished(format!("cannot start the watching thread: {error}")));
        }
        Self { stop, status, thread: thread.ok() }
    }

    /// Returns the status that the watch updates.
    pub fn status(&self) -> &Arc<WatchStatus> {
        &self.status
    }

    /// Requests a stop, and returns without waiting for the end of the watch.
    pub fn begin_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops the watch after current changes are durable.
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
