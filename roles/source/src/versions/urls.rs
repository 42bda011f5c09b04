//! The addresses of versions, built from the configured public base only.

use crate::Naming;
use crate::publish::SourceUrls;
use abreast_core::{Position, State};
use abreast_webtypes::{Timestamp, W3cDatetime};

/// Digits of a stamp: to the microsecond, so that several versions in one second have addresses of
/// their own.
const STAMP_DIGITS: usize = 20;
/// Digits of a stamp to the second, as web archives write it.
const SECOND_DIGITS: usize = 14;

/// Entries with longer keys have no links to versions, so that a full list stays below the 50 MB
/// that a Sitemap may have. The resource itself names its TimeGate and its TimeMap all the same.
const MAX_LISTED_KEY: usize = 128;

/// The addresses of a set's versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionUrls {
    naming: Naming,
    mementos: String,
    timegate: String,
    timemap: String,
    since: Position,
}

impl VersionUrls {
    /// Those of a set of that name, whose resources are named so.
    pub fn new(source: &SourceUrls, slug: &str, naming: Naming) -> Self {
        let base = source.base();
        Self {
            naming,
            mementos: format!("{base}{slug}/m/"),
            timegate: format!("{base}timegate/"),
            timemap: format!("{base}timemap/"),
            since: Position(0),
        }
    }

    /// Versions are kept of changes after this one: see [`abreast_core::Head::versions_since`].
    #[must_use]
    pub fn since(mut self, position: Position) -> Self {
        self.since = position;
        self
    }

    /// Whether a version of a change was kept, unless its bytes were not.
    pub(crate) fn has_change(&self, position: Position) -> bool {
        position > self.since
    }

    /// Whether the entry of a state links to its versions: in a list of resources, or with a change
    /// at a position. A change does only if its bytes were kept when it was recorded.
    pub(crate) fn are_listed(&self, key: &str, state: &State, at: Option<Position>) -> bool {
        key.len() <= MAX_LISTED_KEY
            && at.is_none_or(|at| state.content.is_some() && self.has_change(at))
    }

    /// The names of the set's resources.
    pub fn naming(&self) -> &Naming {
        &self.naming
    }

    /// The URI of the original resource, which has versions.
    pub fn original(&self, key: &str) -> String {
        self.naming.uri(key)
    }

    /// The address of the version that was current from that time on [rfc7089 §2].
    ///
    /// # Examples
    /// ```
    /// use abreast_source::Naming;
    /// use abreast_source::publish::SourceUrls;
    /// use abreast_source::versions::VersionUrls;
    /// use abreast_webtypes::Timestamp;
    ///
    /// let source = SourceUrls::new("https://repo.example/");
    /// let urls = VersionUrls::new(&source, "maps", Naming::new("https://repo.example/maps/r/"));
    /// assert_eq!(
    ///     urls.memento("1571.tif", Timestamp::from_seconds(1_772_355_600)),
    ///     "https://repo.example/maps/m/20260301090000000000/1571.tif",
    /// );
    /// ```
    pub fn memento(&self, key: &str, time: Timestamp) -> String {
        format!("{}{}/{}", self.mementos, stamp_of(time), self.naming.address_path(key))
    }

    /// The address of the TimeGate of a resource, which leads from a date to a version [rfc7089 §2].
    ///
    /// # Examples
    /// ```
    /// use abreast_source::Naming;
    /// use abreast_source::publish::SourceUrls;
    /// use abreast_source::versions::VersionUrls;
    ///
    /// let source = SourceUrls::new("https://repo.example/");
    /// let urls = VersionUrls::new(&source, "maps", Naming::new("https://repo.example/maps/r/"));
    /// assert_eq!(
    ///     urls.timegate("1571.tif"),
    ///     "https://repo.example/timegate/https://repo.example/maps/r/1571.tif",
    /// );
    /// ```
    pub fn timegate(&self, key: &str) -> String {
        format!("{}{}", self.timegate, self.original(key))
    }

    /// The list of all versions, or the first part of it.
    pub fn timemap(&self, key: &str) -> String {
        format!("{}{}", self.timemap, self.original(key))
    }

    /// The part of the list that begins with the version since that time.
    pub fn timemap_from(&self, key: &str, time: Timestamp) -> String {
        format!("{}{}/{}", self.timemap, stamp_of(time), self.original(key))
    }

    /// The same lists in JSON.
    pub fn timemap_json(&self, key: &str) -> String {
        format!("{}json/{}", self.timemap, self.original(key))
    }

    /// A part of the list in JSON.
    pub fn timemap_json_from(&self, key: &str, time: Timestamp) -> String {
        format!("{}json/{}/{}", self.timemap, stamp_of(time), self.original(key))
    }
}

/// A time in an address: year, month, day, hour, minute, second and microsecond, in digits.
///
/// # Examples
/// ```
/// use abreast_source::versions::stamp_of;
/// use abreast_webtypes::W3cDatetime;
///
/// let changed = W3cDatetime::parse(b"2026-03-01T09:30:00.25Z")?.instant;
/// assert_eq!(stamp_of(changed), "20260301093000250000");
/// # Ok::<(), abreast_webtypes::ParseDatetimeError>(())
/// ```
pub fn stamp_of(time: Timestamp) -> String {
    let mut stamp: String = time.to_string().chars().filter(char::is_ascii_digit).collect();
    while stamp.len() < STAMP_DIGITS {
        stamp.push('0');
    }
    stamp
}

/// The time of a stamp, and whether it has microseconds; `None` for other text.
///
/// # Examples
/// ```
/// use abreast_source::versions::at_stamp;
///
/// // Web archives write times to the second.
/// let (time, has_microseconds) = at_stamp("20260301093000").expect("a stamp");
/// assert_eq!(time.to_string(), "2026-03-01T09:30:00Z");
/// assert!(!has_microseconds);
/// assert_eq!(at_stamp("2026-03-01"), None);
/// ```
pub fn at_stamp(stamp: &str) -> Option<(Timestamp, bool)> {
    if !matches!(stamp.len(), SECOND_DIGITS | STAMP_DIGITS)
        || !stamp.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let part = |from: usize, to: usize| &stamp[from..to];
    let (date, time) = (
        [part(0, 4), part(4, 6), part(6, 8)].join("-"),
        [part(8, 10), part(10, 12), part(12, 14)].join(":"),
    );
    let exact = stamp.len() == STAMP_DIGITS;
    let fraction = if exact { format!(".{}", &stamp[SECOND_DIGITS..]) } else { String::new() };
    let read = W3cDatetime::parse(format!("{date}T{time}{fraction}Z").as_bytes()).ok()?;
    // A leap second has no address of its own: each version has one.
    (!exact || stamp_of(read.instant) == stamp).then_some((read.instant, exact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_read_back_as_the_same_time() {
        for micros in [0, 1, 1_767_225_600_000_000, 1_767_225_600_123_456, 1_767_225_600_120_000] {
            let time = Timestamp::from_micros(micros);
            assert_eq!(at_stamp(&stamp_of(time)), Some((time, true)));
        }
        let second = Timestamp::from_seconds(1_767_225_600);
        assert_eq!(at_stamp("20260101000000"), Some((second, false)));
        for bad in [
            "",
            "2026",
            "20261301000000",
            "2026010100000",
            "2026010100000x",
            "202601010000001",
            "20260101235960000000",
        ] {
            assert_eq!(at_stamp(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_version_has_an_address_below_the_public_base() {
        let source = SourceUrls::new("https://example.org/base");
        let urls = VersionUrls::new(&source, "set", Naming::new("https://example.org/base/set/r/"));
        let time = Timestamp::from_micros(1_767_225_600_000_007);
        assert_eq!(
            urls.memento("a%20b/c", time),
            "https://example.org/base/set/m/20260101000000000007/a%20b/c"
        );
        assert_eq!(
            urls.timegate("a"),
            "https://example.org/base/timegate/https://example.org/base/set/r/a"
        );
        assert_eq!(
            urls.timemap_from("https://example.com/x", time),
            "https://example.org/base/timemap/20260101000000000007/https://example.com/x"
        );
    }
}
