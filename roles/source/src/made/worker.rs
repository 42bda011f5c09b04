//! The thread that makes what is due, and its end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often the thread checks what is due; a check compares a few numbers for each set.
const POLL: Duration = Duration::from_secs(1);

/// What a thread that makes files is told.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    stop: AtomicBool,
    woken: Mutex<bool>,
    wake: Condvar,
}

impl Signal {
    /// Whether it is to end, for those that look often.
    pub(crate) const fn flag(&self) -> &AtomicBool {
        &self.stop
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the pause between two checks.
    pub(crate) fn wake(&self) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }

    fn wait(&self) {
        let woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.wake.wait_timeout_while(woken, POLL, |woken| !*woken);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// A thread that makes files; it ends when this is dropped. What it is making then is removed.
#[derive(Debug)]
pub struct Worker {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread that makes what is due, every second and when it is woken.
    pub(crate) fn start(
        name: &str,
        signal: Arc<Signal>,
        tend: impl Fn(&Signal) + Send + 'static,
    ) -> io::Result<Self> {
        let signalled = Arc::clone(&signal);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            while !signalled.is_stopped() {
                tend(&signalled);
                signalled.wait();
            }
        })?;
        Ok(Self { signal, thread: Some(thread) })
    }

    /// Stops it and waits until it has ended.
    pub fn stop(self) {}
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.signal.stop.store(true, Ordering::Relaxed);
        self.signal.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
