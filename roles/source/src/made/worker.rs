//! Thread that makes due files.

use abreast_core::start_thread;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

/// Interval of checks for due files; a check compares a few numbers for each set.
const POLL: Duration = Duration::from_secs(1);

/// Requests to a thread that makes files.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    stop: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Signal {
    /// Flag that is set when the thread must stop.
    pub(crate) const fn flag(&self) -> &AtomicBool {
        &self.stop
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the pause between two checks.
    pub(crate) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// A thread that makes files. Dropping stops the thread and waits for its end; unfinished files
/// are removed.
#[derive(Debug)]
pub(crate) struct Worker {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread that calls `tend` every second, and after [`Signal::wake`].
    pub(crate) fn start(
        name: &str,
        signal: Arc<Signal>,
        tend: impl Fn(&Signal) + Send + 'static,
    ) -> io::Result<Self> {
        Self::start_every(POLL, name, signal, tend)
    }

    /// As [`Self::start`], with another interval.
    pub(crate) fn start_every(
        poll: Duration,
        name: &str,
        signal: Arc<Signal>,
        tend: impl Fn(&Signal) + Send + 'static,
    ) -> io::Result<Self> {
        let signalled = Arc::clone(&signal);
        let thread = start_thread(name, move || {
            while !signalled.is_stopped() {
                tend(&signalled);
                thread::park_timeout(poll);
            }
        })?;
        let _ = signal.thread.set(thread.thread().clone());
        Ok(Self { signal, thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.signal.stop.store(true, Ordering::Relaxed);
        self.signal.wake();
        // The thread itself may drop the last owner of the worker, and ends afterwards.
        let thread = self.thread.take();
        if let Some(thread) = thread.filter(|one| one.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}
