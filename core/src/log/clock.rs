//! The clock. It is passed in, so that tests can set the time.

use abreast_webtypes::Timestamp;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of the current time.
pub trait Clock: Send + Sync + 'static {
    /// The current time; it may step back, callers cope.
    fn now(&self) -> Timestamp;
}

/// The machine's clock, in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_micros() as i64,
            Err(before) => -(before.duration().as_micros() as i64),
        };
        Timestamp::from_micros(micros)
    }
}

/// A clock that stands still until it is set.
///
/// # Examples
/// ```
/// use abreast_core::{Clock as _, FixedClock};
/// use abreast_webtypes::Timestamp;
///
/// let clock = FixedClock::at(Timestamp::from_seconds(1_772_355_600));
/// assert_eq!(clock.now().to_string(), "2026-03-01T09:00:00Z");
/// clock.set(Timestamp::from_seconds(1_772_355_660));
/// assert_eq!(clock.now().to_string(), "2026-03-01T09:01:00Z");
/// ```
#[derive(Debug, Default)]
pub struct FixedClock(AtomicI64);

impl FixedClock {
    /// A clock standing at that instant.
    pub fn at(instant: Timestamp) -> Self {
        Self(AtomicI64::new(instant.as_micros()))
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, instant: Timestamp) {
        self.0.store(instant.as_micros(), Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_is_in_this_century() {
        assert!(SystemClock.now() > Timestamp::from_seconds(1_700_000_000));
        assert!(SystemClock.now() < Timestamp::from_seconds(4_100_000_000));
    }

    #[test]
    fn a_fixed_clock_goes_where_it_is_set() {
        let clock = FixedClock::at(Timestamp::from_seconds(5));
        assert_eq!(clock.now(), Timestamp::from_seconds(5));
        clock.set(Timestamp::from_seconds(-5));
        assert_eq!(clock.now(), Timestamp::from_seconds(-5));
    }
}
