//! Speed of a phase, and when lines are due.

use crate::program::progress::lines::Speed;
use abreast_core::MeterState;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Time over which a speed is measured.
const WINDOW: Duration = Duration::from_secs(10);
/// Shortest time over which a speed is meaningful.
const SPEED_AFTER: Duration = Duration::from_millis(500);
/// Pause between two samples.
const SAMPLE: Duration = Duration::from_millis(500);
/// Pause between two lines in a log.
const LINE_PAUSE: Duration = Duration::from_secs(30);
/// Pause between two lines about a follower that waits.
const IDLE_PAUSE: Duration = Duration::from_secs(60);
/// Pause between two JSON objects.
const OBJECT_PAUSE: Duration = Duration::from_secs(1);

/// Measures the speed of a phase.
#[derive(Debug, Default)]
pub(super) struct SpeedMeter {
    phase: &'static str,
    elapsed: Duration,
    samples: VecDeque<(Duration, u64, u64)>,
}

impl SpeedMeter {
    /// The speed in the last seconds of the phase.
    pub(super) fn measure(&mut self, state: &MeterState) -> Speed {
        if state.phase != self.phase || state.elapsed < self.elapsed {
            (self.phase, self.samples) = (state.phase, VecDeque::from([(Duration::ZERO, 0, 0)]));
        }
        self.elapsed = state.elapsed;
        let since =
            self.samples.back().map_or(Duration::MAX, |last| state.elapsed.saturating_sub(last.0));
        if since >= SAMPLE {
            self.samples.push_back((state.elapsed, state.done, state.bytes));
        }
        // The oldest sample is the last one before the window.
        while self.samples.len() > 2 && state.elapsed.saturating_sub(self.samples[1].0) >= WINDOW {
            self.samples.pop_front();
        }
        let Some((from, done, bytes)) = self.samples.front().copied() else {
            return Speed::default();
        };
        let time = state.elapsed.saturating_sub(from);
        if time < SPEED_AFTER {
            return Speed::default();
        }
        let speed =
            |now: u64, then: u64| Some(now.saturating_sub(then) as f64 / time.as_secs_f64());
        Speed { items: speed(state.done, done), bytes: speed(state.bytes, bytes) }
    }
}

/// When a log gets a line.
#[derive(Debug)]
pub(super) struct LinePace {
    /// Lines were requested: the ends of short phases are printed too.
    is_wanted: bool,
    last: Instant,
    idle: Option<Instant>,
}

impl LinePace {
    pub(super) fn new(is_wanted: bool, now: Instant) -> Self {
        Self { is_wanted, last: now, idle: None }
    }

    /// Whether the present phase gets a line now.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now.saturating_duration_since(self.last) >= LINE_PAUSE;
        if is_due {
            self.last = now;
        }
        is_due
    }

    /// Whether the end of a phase gets a line.
    pub(super) fn tells_end(&self, ended: &MeterState) -> bool {
        self.is_wanted || ended.elapsed >= LINE_PAUSE
    }

    /// Whether a follower that has changed something gets a line now.
    pub(super) fn is_idle_due(&mut self, now: Instant) -> bool {
        let is_due = self.idle.is_none_or(|last| now.saturating_duration_since(last) >= IDLE_PAUSE);
        if is_due {
            self.idle = Some(now);
        }
        is_due
    }
}

/// When a program gets an object.
#[derive(Debug, Default)]
pub(super) struct ObjectPace(Option<Instant>);

impl ObjectPace {
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.0.is_none_or(|last| now.saturating_duration_since(last) >= OBJECT_PAUSE);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(phase: &'static str, seconds: f64, done: u64, bytes: u64) -> MeterState {
        let elapsed = Duration::from_secs_f64(seconds);
        MeterState { phase, elapsed, done, bytes, ..MeterState::default() }
    }

    #[test]
    fn speed_is_that_of_the_last_seconds() {
        let mut meter = SpeedMeter::default();
        assert_eq!(meter.measure(&state("fetching", 0.2, 1, 10)), Speed::default());
        let first = meter.measure(&state("fetching", 1.0, 10, 1_000));
        assert_eq!(first, Speed { items: Some(10.0), bytes: Some(1_000.0) });
        for second in 2..60 {
            meter.measure(&state("fetching", f64::from(second), 10, 1_000));
        }
        let stalled = meter.measure(&state("fetching", 60.0, 10, 1_000));
        assert_eq!(stalled, Speed { items: Some(0.0), bytes: Some(0.0) });
        assert!(meter.samples.len() < 30);
        assert_eq!(meter.measure(&state("deleting", 0.1, 0, 0)), Speed::default());
    }

    #[test]
    fn a_log_gets_a_line_each_half_minute() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut pace = LinePace::new(false, begun);
        let due: Vec<u64> = (0..100).filter(|second| pace.is_due(at(*second))).collect();
        assert_eq!(due, [30, 60, 90]);
        assert!(!pace.tells_end(&state("fetching", 29.0, 1, 1)));
        assert!(pace.tells_end(&state("fetching", 31.0, 1, 1)));
        assert!(LinePace::new(true, begun).tells_end(&state("fetching", 0.1, 1, 1)));
    }

    #[test]
    fn a_follower_gets_at_most_one_line_a_minute() {
        let begun = Instant::now();
        let mut pace = LinePace::new(false, begun);
        let due = (0..=150).filter(|second| pace.is_idle_due(begun + Duration::from_secs(*second)));
        assert_eq!(due.collect::<Vec<_>>(), [0, 60, 120]);
        let mut pace = ObjectPace::default();
        let due = (0..25).filter(|tick| pace.is_due(begun + Duration::from_millis(tick * 100)));
        assert_eq!(due.collect::<Vec<_>>(), [0, 10, 20]);
    }
}
