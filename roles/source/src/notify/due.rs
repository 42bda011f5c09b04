//! Time of the next attempt: immediately, after a pause, or with increasing delay after failures.

use std::time::{Duration, Instant};

/// Delay after the first failure, which doubles with each further failure.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest delay after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Time of the next attempt, and the delay after a failure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) not_before: Instant,
    pause: Duration,
}

impl Due {
    pub(super) fn now() -> Self {
        Self { not_before: Instant::now(), pause: PAUSE }
    }

    pub(super) fn is_at(&self, now: Instant) -> bool {
        self.not_before <= now
    }

    pub(super) fn done(&mut self, wait: Duration) {
        *self = Self { not_before: Instant::now() + wait, pause: PAUSE };
    }

    pub(super) fn failed(&mut self) {
        self.not_before = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_each_failure() {
        let mut due = Due::now();
        assert!(due.is_at(Instant::now()));
        let begun = Instant::now();
        for _ in 0..10 {
            due.failed();
        }
        assert!(
            !due.is_at(begun + Duration::from_secs(59))
                && due.is_at(Instant::now() + LONGEST_PAUSE)
        );
        due.done(Duration::ZERO);
        assert!(due.is_at(Instant::now()));
        due.failed();
        assert!(due.is_at(Instant::now() + PAUSE), "a success resets the pause");
    }
}
