//! Versions of resources: addresses, history and retention.
//!
//! Versions are published as mementos [rfc7089 §2]. Each version has a permanent address, a
//! TimeGate redirects from a date to the version at that date, and a TimeMap lists all versions.

mod collector;
mod history;
mod timemap;
mod urls;

pub use collector::{Collector, KeptSet, collect_all};
pub use history::History;
pub use timemap::{LINK_FORMAT, TimeMap, VERSIONS_PER_PAGE};
pub use urls::{VersionUrls, at_stamp, stamp_of};

/// Encodes a relative path as a key, with each name as a segment.
pub fn key_of(path: &[u8]) -> String {
    crate::names::keys::key_of(path)
}

/// Formats a time as an HTTP date, rounded down to the second [rfc9110 §5.6.7].
///
/// # Examples
/// ```
/// use abreast_source::versions::http_date;
/// use abreast_webtypes::Timestamp;
///
/// let changed = Timestamp::from_micros(1_772_355_600_250_000);
/// assert_eq!(http_date(changed), "Sun, 01 Mar 2026 09:00:00 GMT");
/// ```
pub fn http_date(time: abreast_webtypes::Timestamp) -> String {
    let seconds = time.as_seconds().clamp(0, 253_402_300_799) as u64;
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds))
}
