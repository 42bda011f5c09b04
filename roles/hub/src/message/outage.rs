//! Failures in a row, of which the log has the first and the end.

use abreast_core::LogError;
use std::time::Instant;

/// Counts failures of repeated work.
#[derive(Debug, Default)]
pub(crate) struct Outage(Option<Failures>);

#[derive(Debug)]
struct Failures {
    since: Instant,
    count: u64,
}

impl Outage {
    /// Notes a failure. Returns whether it is the first one, which is to be logged.
    pub(crate) fn failed(&mut self, now: Instant) -> bool {
        let failures = self.0.get_or_insert(Failures { since: now, count: 0 });
        failures.count += 1;
        failures.count == 1
    }

    /// Notes a success. Returns the number of failures before it and their duration in seconds, if
    /// there were any.
    pub(crate) fn ended(&mut self, now: Instant) -> Option<(u64, u64)> {
        let failures = self.0.take()?;
        Some((failures.count, now.saturating_duration_since(failures.since).as_secs()))
    }

    /// As [`Self::failed`] and [`Self::ended`], with a line in the log for the first failure and for
    /// the first success after it. `work` completes a sentence such as `renewals of the lease fail`.
    pub(crate) fn log<T>(&mut self, work: &str, help: &str, result: &Result<T, LogError>) {
        match result {
            Ok(_) => {
                if let Some((failures, seconds)) = self.ended(Instant::now()) {
                    tracing::info!(failures, seconds, "{work} succeed again");
                }
            }
            Err(error) => {
                if self.failed(Instant::now()) {
                    tracing::warn!(%error, help, "{work} fail; further failures are not logged");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_first_failure_and_the_end_are_reported() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(outage.ended(start), None);
        let first: Vec<_> = (0..4).map(|second| outage.failed(at(second))).collect();
        assert_eq!(first, [true, false, false, false]);
        assert_eq!(outage.ended(at(9)), Some((4, 9)));
        assert_eq!(outage.ended(at(10)), None);
        assert!(outage.failed(at(11)));
    }
}
