//! Lease durations of subscriptions [websub §5.1, §8.2].

use std::time::Duration;

/// The leases that a hub grants. Every request is moved into the limits: no lease is perpetual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseLimits {
    /// Granted when nothing is asked for: 10 days by default.
    pub default: Duration,
    /// The shortest: 300 seconds by default [rs-framework-notification §4.2].
    pub min: Duration,
    /// The longest: 31 days by default [rs-framework-notification §4.2].
    pub max: Duration,
}

const DAY: u64 = 24 * 60 * 60;

impl Default for LeaseLimits {
    fn default() -> Self {
        Self {
            default: Duration::from_secs(10 * DAY),
            min: Duration::from_secs(300),
            max: Duration::from_secs(31 * DAY),
        }
    }
}

impl LeaseLimits {
    /// Other limits, put in order: at least one second, and the default within the span.
    #[must_use]
    pub fn new(default: Duration, min: Duration, max: Duration) -> Self {
        let min = min.max(Duration::from_secs(1));
        let max = max.max(min);
        Self { default: default.clamp(min, max), min, max }
    }

    /// The granted lease, in whole seconds as sent to the subscriber.
    ///
    /// # Examples
    /// ```
    /// use abreast_websub::LeaseLimits;
    ///
    /// let limits = LeaseLimits::default();
    /// assert_eq!(limits.grant(Some(86_400)), 86_400);
    /// // A wish for a lease without end gets the longest lease: 31 days.
    /// assert_eq!(limits.grant(Some(u64::MAX)), 31 * 86_400);
    /// assert_eq!(limits.grant(None), 10 * 86_400);
    /// ```
    #[must_use]
    pub fn grant(&self, asked_seconds: Option<u64>) -> u64 {
        let (min, max) = (self.min.as_secs().max(1), self.max.as_secs());
        asked_seconds.unwrap_or(self.default.as_secs()).clamp(min, max.max(min))
    }
}

/// Time after which a subscriber renews: three quarters of the granted lease [websub §5.3.1].
///
/// The last quarter remains for retries of failed requests, for short leases too.
///
/// # Examples
/// ```
/// use abreast_websub::renew_after;
/// use std::time::Duration;
///
/// const HOUR: Duration = Duration::from_secs(3_600);
/// assert_eq!(renew_after(24 * HOUR), 18 * HOUR);
/// ```
#[must_use]
pub fn renew_after(granted: Duration) -> Duration {
    granted.saturating_mul(3) / 4
}

/// Reads a wish as it is in forms and queries.
///
/// Lenient: a negative number requests the shortest lease, a number above every limit the longest,
/// and any other text no particular lease. The subscriber receives the granted value.
pub(crate) fn parse_seconds(text: &str) -> Option<u64> {
    let text = text.trim_ascii();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if negative { Some(0) } else { Some(digits.parse().unwrap_or(u64::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn any_wish_is_moved_into_the_span() {
        let limits = LeaseLimits::default();
        let granted = |text: &str| limits.grant(parse_seconds(text));
        for (asked, granted_seconds) in [
            ("0", 300),
            ("-1", 300),
            ("1000000000000", 31 * DAY),
            ("99999999999999999999999999", 31 * DAY),
            ("", 10 * DAY),
            ("a week", 10 * DAY),
            ("1e9", 10 * DAY),
            ("-", 10 * DAY),
            (" 86400 ", 86_400),
            ("+600", 600),
        ] {
            assert_eq!(granted(asked), granted_seconds, "{asked}");
        }
        assert_eq!(limits.grant(None), 10 * DAY);
    }

    #[test]
    fn limits_are_put_in_order() {
        let seconds = Duration::from_secs;
        let limits = LeaseLimits::new(seconds(1_000), seconds(10), seconds(5));
        assert_eq!(
            limits,
            LeaseLimits { default: seconds(10), min: seconds(10), max: seconds(10) }
        );
        assert_eq!(LeaseLimits::new(seconds(0), seconds(0), seconds(0)).grant(Some(0)), 1);
    }

    #[test]
    fn renewal_comes_before_the_end() {
        assert_eq!(renew_after(Duration::from_secs(5)), Duration::from_millis(3_750));
        assert!(renew_after(Duration::MAX) < Duration::MAX);
    }

    proptest! {
        #[test]
        fn no_lease_is_outside_the_span(text: String, default: u32, min: u32, max: u32) {
            let limits = LeaseLimits::new(
                Duration::from_secs(default.into()),
                Duration::from_secs(min.into()),
                Duration::from_secs(max.into()),
            );
            let granted = limits.grant(parse_seconds(&text));
            prop_assert!((limits.min.as_secs()..=limits.max.as_secs()).contains(&granted));
        }
    }
}
