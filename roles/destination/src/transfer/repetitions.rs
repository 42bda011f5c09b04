//! The number of useless repetitions of requests in a run.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Number of consecutive useless repetitions after which a run makes no more: the list is wrong, not
/// the transfer.
const USELESS_MAX: usize = 16;

/// The repetitions of a run.
#[derive(Debug)]
pub(crate) struct Repetitions {
    /// A place for each repetition that may be useless.
    places: Semaphore,
    /// Places of useless repetitions.
    useless: AtomicUsize,
}

impl Default for Repetitions {
    fn default() -> Self {
        Self { places: Semaphore::new(USELESS_MAX), useless: AtomicUsize::new(0) }
    }
}

impl Repetitions {
    /// A place for a repetition; `None` after too many useless ones.
    pub(crate) async fn begin(&self) -> Option<SemaphorePermit<'_>> {
        self.places.acquire().await.ok()
    }

    /// Whether no more requests are repeated.
    pub(crate) fn is_over(&self) -> bool {
        self.places.is_closed()
    }

    /// Returns all places after a repetition that was useful.
    pub(crate) fn was_useful(&self) {
        self.places.add_permits(self.useless.swap(0, Relaxed));
    }

    /// Takes away the place of a useless repetition.
    pub(crate) fn was_useless(&self, place: SemaphorePermit<'_>) {
        place.forget();
        if self.useless.fetch_add(1, Relaxed) + 1 == USELESS_MAX {
            self.places.close();
        }
    }
}
