//! Pauses between attempts: the pause that a host requests, and a random part.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, SystemTime};

/// A `Retry-After` above this is treated as a mistake of the server.
pub(crate) const PLAUSIBLE: Duration = Duration::from_secs(24 * 3_600);

/// The pause a `Retry-After` value asks for: seconds or an HTTP date. `None` when it is unreadable,
/// negative, past or more than a day; the cap of
/// [`Options::max_retry_after`](crate::Options::max_retry_after) is applied where it is used.
///
/// # Examples
/// ```
/// use abreast_net::retry_after;
/// use std::time::{Duration, SystemTime};
///
/// // 2026-03-01T08:59:00Z.
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_355_540);
/// assert_eq!(retry_after("120", now), Some(Duration::from_secs(120)));
/// let minute = Duration::from_secs(60);
/// assert_eq!(retry_after("Sun, 01 Mar 2026 09:00:00 GMT", now), Some(minute));
/// assert_eq!(retry_after("tomorrow", now), None);
/// ```
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let pause = if value.bytes().all(|b| b.is_ascii_digit()) {
        Duration::from_secs(value.parse().ok()?)
    } else {
        httpdate::parse_http_date(value).ok()?.duration_since(now).ok()?
    };
    (pause > Duration::ZERO && pause <= PLAUSIBLE).then_some(pause)
}

/// A random part of `most`. The randomness need not be good: the seed of a new hash map suffices.
pub(crate) fn jitter(most: Duration) -> Duration {
    let random = RandomState::new().hash_one(0_u8);
    most.mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
}
