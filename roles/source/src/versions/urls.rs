//! Addresses of versions, derived from the configured public base URL only, never from a request.

use crate::Naming;
use crate::publish::SourceUrls;
use abreast_core::{Position, State};
use abreast_webtypes::{Timestamp, W3cDatetime};

/// Digits of a stamp in microseconds. A finer unit than seconds is necessary because a resource can
/// change several times in a second, and each version has an address.
const STAMP_DIGITS: usize = 20;
/// Digits of a stamp in seconds, the format of web archives.
const SECOND_DIGITS: usize = 14;

/// Longest key, in bytes, for which an entry links to versions, so that a full list is smaller than
/// 50 MB, the limit for a Sitemap. Responses with the resource always link to its TimeGate and its
/// TimeMap.
const MAX_LISTED_KEY: usize = 128;

/// Addresses of the versions, TimeGates and TimeMaps of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionUrls {
    naming: Naming,
    mementos: String,
    timegate: String,
    timemap: String,
    since: Position,
}

impl VersionUrls {
    /// Creates the addresses for the set with this name in URLs and this naming of resources.
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

    /// Sets the position in the log after which the store contains versions of changes: see
    /// [`abreast_core::Head::versions_since`].
    #[must_use]
    pub fn since(mut self, position: Position) -> Self {
        self.since = position;
        self
    }

    /// Whether the store contains a version of a change, possibly without its bytes.
    pub(crate) fn has_change(&self, position: Position) -> bool {
        position > self.since
    }

    /// Whether the entry of a resource links to its versions. `at` is the position of the change,
    /// or `None` in a list of resources. The entry of a change only has links if the bytes were
    /// stored when the change was recorded.
    pub(crate) fn are_listed(&self, key: &str, state: &State, at: Option<Position>) -> bool {
        key.len() <= MAX_LISTED_KEY
            && at.is_none_or(|at| state.content.is_some() && self.has_change(at))
    }

    /// Names of the set's resources, in keys and URIs.
    pub fn naming(&self) -> &Naming {
        &self.naming
    }

    /// Returns the URI of the original resource [rfc7089 §2].
    pub fn original(&self, key: &str) -> String {
        self.naming.uri(key)
    }

    /// Returns the address of the version that became current at that time [rfc7089 §2].
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

    /// Returns the address of the TimeGate of a resource, which redirects to the version at a date
    /// [rfc7089 §2].
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

    /// Returns the address of the list of all versions; a long list has several pages, of which
    /// this is the first.
    pub fn timemap(&self, key: &str) -> String {
        format!("{}{}", self.timemap, self.original(key))
    }

    /// Returns the address of the page that starts with the version at that time.
    pub fn timemap_from(&self, key: &str, time: Timestamp) -> String {
        format!("{}{}/{}", self.timemap, stamp_of(time), self.original(key))
    }

    /// Returns the address of the first page of the list of versions, in JSON.
    pub fn timemap_json(&self, key: &str) -> String {
        format!("{}json/{}", self.timemap, self.original(key))
    }

    /// Returns the address of a later page of the list of versions, in JSON.
    pub fn timemap_json_from(&self, key: &str, time: Timestamp) -> String {
        format!("{}json/{}/{}", self.timemap, stamp_of(time), self.original(key))
    }
}

/// Formats a time for an address: year, month, day, hour, minute, second and microsecond, in
/// digits.
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

/// Parses a stamp in an address; the flag is true if the stamp has microseconds. Returns `None` for
/// other text.
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
    // A leap second is refused: it would be a second address for the same version.
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
