//! The time of the database, for all nodes of a store.

use abreast_core::{Clock, SystemClock};
use abreast_webtypes::Timestamp;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The clock of a database: the time in its last answer, which the monotonic clock of this process
/// continues. The times of nodes whose own clocks differ are therefore comparable. Before the first
/// answer it has the time of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatabaseClock(Arc<Mutex<Option<(i64, Instant)>>>);

impl DatabaseClock {
    /// Sets the time to that of an answer, in microseconds since 1970, to a statement that was sent at
    /// `begin`.
    pub(crate) fn set(&self, micros: i64, begin: Instant) {
        // The database read its clock after it got the statement, and before the answer arrived.
        let read = begin + begin.elapsed() / 2;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((micros, read));
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.map_or_else(
            || SystemClock.now(),
            |(micros, read)| {
                let since = i64::try_from(read.elapsed().as_micros()).unwrap_or(i64::MAX);
                Timestamp::from_micros(micros.saturating_add(since))
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_time_of_the_database_is_continued() {
        let clock = DatabaseClock::default();
        let own = SystemClock.now().as_micros();
        assert!(clock.now().as_micros() - own < 60_000_000, "the time of the machine at first");
        // The answer took two seconds.
        let begin = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
        clock.set(1_000_000_000, begin);
        let later = clock.clone().now().as_micros();
        assert!((1_001_000_000..1_031_000_000).contains(&later), "{later}");
    }
}
