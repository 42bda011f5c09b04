//! The thread that takes the copies of all sets; its owner stops and awaits it.

use super::copies::ArchiveError;
use super::take;
use crate::publish::publisher::Publisher;
use crate::scan::ingest::with_causes;
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often the thread checks whether a copy is due; a check compares two numbers for each set.
const CHECK: Duration = Duration::from_secs(1);
/// Pause after a copy that failed.
const RETRY: Duration = Duration::from_secs(60);

/// The thread that takes copies; stopped by [`Keeper::stop`], or when dropped.
#[derive(Debug)]
pub struct Keeper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts it.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(publisher: impl Deref<Target = Publisher> + Send + 'static) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("archives".into())
            .spawn(move || keep(&publisher, &stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops after the list being copied.
    pub fn stop(mut self) {
        self.join();
    }

    fn join(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.join();
    }
}

fn keep(publisher: &Publisher, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let mut wait = CHECK;
        for set in publisher.sets() {
            match take(&**publisher.log(), set, stop) {
                Ok(_) | Err(ArchiveError::Stopped) => {}
                Err(error) => {
                    tracing::error!(set = %set.slug, "cannot archive the Resource List: {}; retrying", with_causes(&error));
                    wait = RETRY;
                }
            }
        }
        thread::park_timeout(wait);
    }
}
