//! The clock of this machine, which a simulation can replace.

use abreast_webtypes::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds of a second: times of HTTP and of most Sources are whole seconds.
pub(crate) const SECOND_MICROS: i64 = 1_000_000;

pub(crate) fn now() -> Timestamp {
    #[cfg(test)]
    if let Some(now) = SIMULATED.get() {
        return now;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

pub(crate) fn now_seconds() -> u64 {
    #[cfg(test)]
    if let Some(now) = SIMULATED.get() {
        return u64::try_from(now.as_micros() / 1_000_000).unwrap_or(0);
    }
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
thread_local! {
    static SIMULATED: std::cell::Cell<Option<Timestamp>> = const { std::cell::Cell::new(None) };
}

/// Sets the clock of this thread, for a simulation.
#[cfg(test)]
pub(crate) fn set(now: Timestamp) {
    SIMULATED.set(Some(now));
}

/// The earlier of two times in UTC, if there is any.
pub(crate) fn earlier(one: Option<String>, other: Option<String>) -> Option<String> {
    one.into_iter().chain(other).min()
}
