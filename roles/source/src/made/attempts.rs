//! Schedule of attempts: an interval, measured by a monotonic clock while the process runs, and a pause after each
//! failure.

use crate::scan::ingest::with_causes;
use abreast_webtypes::Timestamp;
use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pause after a failed attempt to make a file; each further failure doubles the pause.
const PAUSE: Duration = Duration::from_secs(60);
/// Longest pause after failed attempts to make a file.
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);
/// Pause after a failure that only an operator can repair.
const LASTING_PAUSE: Duration = Duration::from_secs(3_600);

/// Error of an attempt.
pub(crate) trait Failure: Error {
    /// Whether the attempt was ended because the program stops.
    fn is_stop(&self) -> bool;

    /// Whether only an operator can repair the cause.
    fn is_lasting(&self) -> bool {
        false
    }
}

/// Interval and pauses for a kind of files and a set.
#[derive(Debug)]
pub(crate) struct Attempts {
    /// Task, for messages.
    what: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Last success of this process.
    made: Option<Instant>,
    /// Number of failures after the last success.
    failures: u32,
    not_before: Option<Instant>,
    /// Error of the last attempt.
    why: Option<String>,
}

impl Attempts {
    /// Attempts at the task `what`, such as "make the dump of the set".
    pub(crate) fn new(what: String) -> Self {
        Self { what, state: Mutex::default() }
    }

    /// Whether a file with the time `last` is `every` old. If an earlier process made the file and `last` is later than
    /// `now`, the clock was set back, and the interval is over.
    pub(crate) fn is_over(&self, every: Duration, last: Timestamp, now: Timestamp) -> bool {
        match self.lock().made {
            Some(made) => made.elapsed() >= every,
            None => match u64::try_from(now.as_micros().saturating_sub(last.as_micros())) {
                Ok(age) => Duration::from_micros(age) >= every,
                Err(_) => true,
            },
        }
    }

    /// As [`Self::is_over`], for files of several nodes, whose clocks may differ a little. If `last`
    /// is later than `now` by more than the interval, the clock was set back.
    pub(crate) fn is_over_of_nodes(every: Duration, last: Timestamp, now: Timestamp) -> bool {
        let age = now.as_micros().saturating_sub(last.as_micros());
        let every = i64::try_from(every.as_micros()).unwrap_or(i64::MAX);
        age >= every || age < every.saturating_neg()
    }

    /// Whether a failure was too recent for the next attempt.
    pub(crate) fn rests(&self) -> bool {
        self.lock().not_before.is_some_and(|time| Instant::now() < time)
    }

    /// Ends the pause after a failure.
    pub(crate) fn end_pause(&self) {
        self.lock().not_before = None;
    }

    /// Error of the last attempt, and the time until the next attempt.
    pub(crate) fn failure(&self) -> Option<(String, Duration)> {
        let state = self.lock();
        let wait = state.not_before?.saturating_duration_since(Instant::now());
        Some((state.why.clone()?, wait))
    }

    /// Calls `make`, which returns `Ok(None)` if nothing is due. A failure is logged with all causes, and a pause follows.
    pub(crate) fn attempt<T, E: Failure>(
        &self,
        make: impl FnOnce() -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        self.lock().why = None;
        let made = make();
        match &made {
            Ok(None) => {}
            Ok(Some(_)) => {
                *self.lock() = State { made: Some(Instant::now()), ..State::default() };
            }
            Err(error) => self.failed(error, Instant::now()),
        }
        made
    }

    fn failed(&self, error: &impl Failure, now: Instant) {
        if error.is_stop() {
            return;
        }
        let mut state = self.lock();
        let doubled = LONGEST_PAUSE.min(PAUSE * (1 << state.failures.min(10)));
        let pause = if error.is_lasting() { LASTING_PAUSE } else { doubled };
        state.failures = state.failures.saturating_add(1);
        (state.not_before, state.why) = (Some(now + pause), Some(error.to_string()));
        drop(state);
        let (what, why, seconds) = (&self.what, with_causes(error), pause.as_secs());
        let message = format!("cannot {what}: {why}; the next attempt follows in {seconds} s");
        #[cfg(test)]
        super::steps::told(&message);
        tracing::error!("{message}");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("it cannot be written")]
    struct Wrong([bool; 2], #[source] std::io::Error);

    const STOP: [bool; 2] = [true, false];
    const PASSING: [bool; 2] = [false, false];
    const LASTING: [bool; 2] = [false, true];

    impl Failure for Wrong {
        fn is_stop(&self) -> bool {
            self.0[0]
        }

        fn is_lasting(&self) -> bool {
            self.0[1]
        }
    }

    fn wrong(nature: [bool; 2]) -> Wrong {
        Wrong(nature, std::io::ErrorKind::StorageFull.into())
    }

    fn attempts() -> Attempts {
        Attempts::new("make it".to_owned())
    }

    #[test]
    fn an_interval_is_over_whatever_the_clock_was_set_to() {
        let (hour, now) = (Duration::from_secs(3_600), Timestamp::from_seconds(1_800_000_000));
        let other = |seconds: i64| Timestamp::from_seconds(1_800_000_000 + seconds);
        let attempts = attempts();
        for (last, is_over) in
            [(-3_600, true), (-3_599, false), (0, false), (1, true), (1 << 30, true)]
        {
            assert_eq!(attempts.is_over(hour, other(last), now), is_over, "{last}");
        }
        assert_eq!(attempts.attempt(|| Ok::<_, Wrong>(Some(1))).unwrap(), Some(1));
        for last in [-7_200, 0, 7_200] {
            assert!(!attempts.is_over(hour, other(last), now), "{last}");
            assert!(attempts.is_over(Duration::ZERO, other(last), now), "{last}");
        }
    }

    #[test]
    fn an_interval_of_nodes_allows_for_their_clocks() {
        let (hour, now) = (Duration::from_secs(3_600), Timestamp::from_seconds(1_800_000_000));
        for (last, is_over) in [(-3_600, true), (-3_599, false), (30, false), (3_601, true)] {
            let last = Timestamp::from_seconds(1_800_000_000 + last);
            assert_eq!(Attempts::is_over_of_nodes(hour, last, now), is_over);
        }
        assert!(Attempts::is_over_of_nodes(Duration::ZERO, now, now));
    }

    #[test]
    fn the_pause_doubles_up_to_its_limit_and_ends_with_success() {
        let attempts = attempts();
        let now = Instant::now();
        let pause = |nature: [bool; 2]| {
            attempts.failed(&wrong(nature), now);
            attempts.lock().not_before.unwrap().duration_since(now).as_secs()
        };
        let pauses: Vec<_> = (0..7).map(|_| pause(PASSING)).collect();
        assert_eq!(pauses, [60, 120, 240, 480, 900, 900, 900]);
        assert_eq!(pause(LASTING), 3_600);
        let (why, wait) = attempts.failure().unwrap();
        assert!(attempts.rests() && why == "it cannot be written" && wait.as_secs() > 3_000);
        attempts.attempt(|| Ok::<_, Wrong>(Some(()))).unwrap();
        assert!(!attempts.rests() && attempts.failure().is_none());
        assert_eq!(pause(PASSING), 60);
    }

    #[test]
    fn a_stop_and_nothing_due_are_no_failures() {
        let attempts = attempts();
        assert!(attempts.attempt::<(), _>(|| Err(wrong(STOP))).is_err());
        assert!(attempts.attempt::<(), Wrong>(|| Ok(None)).unwrap().is_none());
        assert!(!attempts.rests() && attempts.lock().made.is_none());
    }
}
