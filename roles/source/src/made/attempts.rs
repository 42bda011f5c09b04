//! When files of one kind are made: after an interval, by a clock that is never set for as long as the process runs, and
//! not too soon after a failure.

use crate::scan::ingest::with_causes;
use abreast_webtypes::Timestamp;
use std::error::Error;
use std::fmt::Arguments;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The pause after a failure; each further failure doubles it.
const PAUSE: Duration = Duration::from_secs(60);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);
/// The pause after a failure that only an operator can repair.
const LASTING_PAUSE: Duration = Duration::from_secs(3_600);

/// What an error says about the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// The program ends, which is no failure.
    Stopped,
    /// The next attempt may be successful.
    Passing,
    /// Only an operator can repair it.
    Lasting,
}

/// Why something was not made.
pub(crate) trait Failure: Error {
    fn nature(&self) -> Nature;
}

/// The attempts to make files of one kind, of one set.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// When one was made last in this process.
    made: Option<Instant>,
    /// Since then.
    failures: u32,
    not_before: Option<Instant>,
    /// Why the last attempt failed.
    why: Option<String>,
}

impl Attempts {
    /// Whether what was made at the time `last` of a clock is `every` old. If an earlier process made it, a time later than
    /// `now` shows that one of the clocks is wrong: it is due.
    pub(crate) fn is_over(&self, every: Duration, last: Timestamp, now: Timestamp) -> bool {
        match self.lock().made {
            Some(made) => made.elapsed() >= every,
            None => match u64::try_from(now.as_micros().saturating_sub(last.as_micros())) {
                Ok(age) => Duration::from_micros(age) >= every,
                Err(_) => true,
            },
        }
    }

    /// Whether a failure was too recent for the next attempt.
    pub(crate) fn rests(&self) -> bool {
        self.lock().not_before.is_some_and(|time| Instant::now() < time)
    }

    /// Why the last attempt failed, and the time until the next one.
    pub(crate) fn failure(&self) -> Option<(String, Duration)> {
        let state = self.lock();
        let wait = state.not_before?.saturating_duration_since(Instant::now());
        Some((state.why.clone()?, wait))
    }

    /// Makes one. `Ok(None)` is that none was due. A failure is logged with its causes, as that of `what`, and followed by a
    /// pause.
    pub(crate) fn attempt<T, E: Failure>(
        &self,
        what: Arguments<'_>,
        make: impl FnOnce() -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        self.lock().why = None;
        let made = make();
        match &made {
            Ok(None) => {}
            Ok(Some(_)) => {
                *self.lock() = State { made: Some(Instant::now()), ..State::default() };
            }
            Err(error) => self.failed(what, error, Instant::now()),
        }
        made
    }

    fn failed(&self, what: Arguments<'_>, error: &impl Failure, now: Instant) {
        let mut state = self.lock();
        let pause = match error.nature() {
            Nature::Stopped => return,
            Nature::Passing => LONGEST_PAUSE.min(PAUSE * (1 << state.failures.min(10))),
            Nature::Lasting => LASTING_PAUSE,
        };
        state.failures = state.failures.saturating_add(1);
        (state.not_before, state.why) = (Some(now + pause), Some(error.to_string()));
        drop(state);
        let (why, seconds) = (with_causes(error), pause.as_secs());
        let message = format!("cannot {what}: {why}; the next attempt follows in {seconds} s");
        #[cfg(test)]
        super::steps::told(&message);
        tracing::error!("{message}");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("it cannot be written")]
    struct Wrong(Nature, #[source] std::io::Error);

    impl Failure for Wrong {
        fn nature(&self) -> Nature {
            self.0
        }
    }

    fn wrong(nature: Nature) -> Wrong {
        Wrong(nature, std::io::ErrorKind::StorageFull.into())
    }

    #[test]
    fn an_interval_is_over_whatever_the_clock_was_set_to() {
        let (hour, now) = (Duration::from_secs(3_600), Timestamp::from_seconds(1_800_000_000));
        let other = |seconds: i64| Timestamp::from_seconds(1_800_000_000 + seconds);
        let attempts = Attempts::default();
        for (last, is_over) in
            [(-3_600, true), (-3_599, false), (0, false), (1, true), (1 << 30, true)]
        {
            assert_eq!(attempts.is_over(hour, other(last), now), is_over, "{last}");
        }
        assert_eq!(
            attempts.attempt(format_args!("make it"), || Ok::<_, Wrong>(Some(1))).unwrap(),
            Some(1)
        );
        for last in [-7_200, 0, 7_200] {
            assert!(!attempts.is_over(hour, other(last), now), "{last}");
            assert!(attempts.is_over(Duration::ZERO, other(last), now), "{last}");
        }
    }

    #[test]
    fn the_pause_doubles_up_to_its_limit_and_ends_with_success() {
        let attempts = Attempts::default();
        let now = Instant::now();
        let pause = |nature| {
            attempts.failed(format_args!("make it"), &wrong(nature), now);
            attempts.lock().not_before.unwrap().duration_since(now).as_secs()
        };
        let pauses: Vec<_> = (0..7).map(|_| pause(Nature::Passing)).collect();
        assert_eq!(pauses, [60, 120, 240, 480, 900, 900, 900]);
        assert_eq!(pause(Nature::Lasting), 3_600);
        let (why, wait) = attempts.failure().unwrap();
        assert!(attempts.rests() && why == "it cannot be written" && wait.as_secs() > 3_000);
        attempts.attempt(format_args!("make it"), || Ok::<_, Wrong>(Some(()))).unwrap();
        assert!(!attempts.rests() && attempts.failure().is_none());
        assert_eq!(pause(Nature::Passing), 60);
    }

    #[test]
    fn a_stop_and_nothing_due_are_no_failures() {
        let attempts = Attempts::default();
        assert!(
            attempts.attempt::<(), _>(format_args!("x"), || Err(wrong(Nature::Stopped))).is_err()
        );
        assert!(attempts.attempt::<(), Wrong>(format_args!("x"), || Ok(None)).unwrap().is_none());
        assert!(!attempts.rests() && attempts.lock().made.is_none());
    }
}
