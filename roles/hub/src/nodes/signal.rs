//! A signal that ends the waits of threads.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Ends the waits of all threads at once, and all later waits.
#[derive(Default)]
pub(super) struct StopSignal {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl StopSignal {
    pub(super) fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for a time, or until the signal is set. Returns whether it is.
    pub(super) fn wait(&self, time: Duration) -> bool {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_set, time, |is_set| !*is_set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
