//! A folder that is watched: what changes in it is recorded.

pub use super::watch_options::WatchOptions;

use crate::scan::status::{WatchState, WatchStatus};
use crate::scan::watching::Watching;
use abreast_core::{ChangeLog, SetId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

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
