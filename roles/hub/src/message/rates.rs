//! Rate limits: a burst, then a number of requests per second.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Most askers remembered; then askers with the most requests left are forgotten.
const MAX_ASKERS: usize = 65_536;

/// Remaining requests of each asker.
pub(crate) struct Rates<K> {
    burst: f64,
    per_second: f64,
    askers: HashMap<K, (f64, Instant)>,
}

impl<K: Hash + Eq> Rates<K> {
    pub(crate) fn new(burst: u32, per_second: f64) -> Self {
        Self {
            burst: f64::from(burst.max(1)),
            per_second: per_second.max(1e-6),
            askers: HashMap::new(),
        }
    }

    /// Counts a request, or returns the time to wait.
    pub(crate) fn take(&mut self, asker: K, now: Instant) -> Result<(), Duration> {
        self.check(&asker, now)?;
        let left = self.left(&asker, now) - 1.0;
        if self.askers.len() >= MAX_ASKERS && !self.askers.contains_key(&asker) {
            self.forget(now);
        }
        self.askers.insert(asker, (left, now));
        Ok(())
    }

    /// Checks whether a request is allowed; otherwise returns the time to wait.
    pub(crate) fn check(&self, asker: &K, now: Instant) -> Result<(), Duration> {
        let left = self.left(asker, now);
        if left >= 1.0 {
            Ok(())
        } else {
            Err(Duration::from_secs_f64((1.0 - left) / self.per_second))
        }
    }

    fn left(&self, asker: &K, now: Instant) -> f64 {
        self.askers.get(asker).map_or(self.burst, |(left, then)| {
            (left + now.saturating_duration_since(*then).as_secs_f64() * self.per_second)
                .min(self.burst)
        })
    }

    fn forget(&mut self, now: Instant) {
        let (burst, rate) = (self.burst, self.per_second);
        let now_left = |(left, then): &(f64, Instant)| {
            (left + now.saturating_duration_since(*then).as_secs_f64() * rate).min(burst)
        };
        self.askers.retain(|_, asker| now_left(asker) < burst);
        if self.askers.len() >= MAX_ASKERS {
            let mut all: Vec<f64> = self.askers.values().map(now_left).collect();
            let middle = all.len() / 2;
            let (_, median, _) = all.select_nth_unstable_by(middle, f64::total_cmp);
            let median = *median;
            self.askers.retain(|_, asker| now_left(asker) < median);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_one_at_a_time() {
        let (mut rates, now) = (Rates::new(2, 10.0), Instant::now());
        assert!(rates.take("a", now).is_ok() && rates.take("a", now).is_ok());
        let wait = rates.take("a", now).unwrap_err();
        assert!((wait.as_secs_f64() - 0.1).abs() < 1e-6);
        assert!(rates.take("b", now).is_ok());
        assert!(rates.take("a", now + Duration::from_millis(101)).is_ok());
        assert!(rates.take("a", now + Duration::from_millis(101)).is_err());
    }

    #[test]
    fn memory_is_bounded() {
        let (mut rates, now) = (Rates::new(5, 0.001), Instant::now());
        for asker in 0..200_000_u32 {
            let _ = rates.take(asker, now);
        }
        assert!(rates.askers.len() <= MAX_ASKERS);
    }
}
