//! What is made at intervals, and when it is due: by a clock that is never set, for as long as the process runs.

use abreast_webtypes::Timestamp;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When it was made last in this process.
#[derive(Debug, Default)]
pub(crate) struct Interval(Mutex<Option<Instant>>);

impl Interval {
    /// It was made now.
    pub(crate) fn made(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether what was made at the time `last` of a clock is `every` old. If an earlier process made it, a time later than
    /// `now` shows that one of the clocks is wrong: it is due.
    pub(crate) fn is_over(&self, every: Duration, last: Timestamp, now: Timestamp) -> bool {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(made) => made.elapsed() >= every,
            None => match u64::try_from(now.as_micros().saturating_sub(last.as_micros())) {
                Ok(age) => Duration::from_micros(age) >= every,
                Err(_) => true,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_over_whatever_the_clock_was_set_to() {
        let (hour, now) = (Duration::from_secs(3_600), Timestamp::from_seconds(1_800_000_000));
        let other = |seconds: i64| Timestamp::from_seconds(1_800_000_000 + seconds);
        let interval = Interval::default();
        for (last, is_over) in
            [(-3_600, true), (-3_599, false), (0, false), (1, true), (1 << 30, true)]
        {
            assert_eq!(interval.is_over(hour, other(last), now), is_over, "{last}");
        }
        interval.made();
        for last in [-7_200, 0, 7_200] {
            assert!(!interval.is_over(hour, other(last), now), "{last}");
            assert!(interval.is_over(Duration::ZERO, other(last), now), "{last}");
        }
    }
}
