//! The thread that deletes the rows of removed sets, if `abreast set remove` was interrupted.

use abreast_core::{LogError, start_thread};
use abreast_store::SharedSets;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

/// Pause after an error of the database.
const RETRY: Duration = Duration::from_secs(10);

/// A thread that ends when all rows of removed sets are deleted. Dropping the value stops the thread.
pub(super) struct Removals {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Removals {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn start(sets: Arc<dyn SharedSets>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = start_thread("removals", move || run(&*sets, &|| stopped.load(SeqCst)))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

fn run(sets: &dyn SharedSets, is_stopped: &dyn Fn() -> bool) {
    while !is_stopped() {
        match finish(sets, is_stopped) {
            Ok(()) => return,
            Err(error) if error.is_passing() => std::thread::park_timeout(RETRY),
            Err(error) => {
                tracing::error!("cannot delete the rows of removed sets: {error}");
                return;
            }
        }
    }
}

fn finish(sets: &dyn SharedSets, is_stopped: &dyn Fn() -> bool) -> Result<(), LogError> {
    let names = sets.unfinished_removals()?;
    if names.is_empty() {
        return Ok(());
    }
    tracing::info!("deleting the rows of removed sets: {}", names.join(", "));
    sets.finish_removals(is_stopped)
}

impl Drop for Removals {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
