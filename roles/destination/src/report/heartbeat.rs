//! A sign that a run works, for watchdogs in the same process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time at which a run last showed that it works. Clones share the time.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    start: Instant,
    /// Milliseconds from `start` to the last call of [`Heartbeat::beat`].
    last: Arc<AtomicU64>,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { start: Instant::now(), last: Arc::default() }
    }
}

impl Heartbeat {
    /// Records that the run works now. A run calls it several times a second while it waits for a
    /// server or for notifications, and with each step of its work.
    pub fn beat(&self) {
        let since = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.fetch_max(since, Ordering::Relaxed);
    }

    /// Time since the last sign, or since this value was created.
    pub fn age(&self) -> Duration {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.start.elapsed().saturating_sub(last)
    }
}
