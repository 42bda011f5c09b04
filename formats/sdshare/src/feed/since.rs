//! `since`: the request parameter of fragments feeds, read by servers and added by clients.

use crate::feed::time::{read_time, stamp};
use abreast_webtypes::{ParseDatetimeError, Timestamp, excerpt};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use thiserror::Error;

/// The reason why `since` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`since` is \"{value}\": {cause}\n  help: write the time as Atom does, for example \
     `since=2026-01-31T09:00:00Z`; leave the parameter out for all fragments"
)]
pub struct SinceError {
    /// The value, shortened for the message.
    value: String,
    cause: ParseDatetimeError,
}

/// Reads the value of `since` [sdshare §Fragments Feed]; `None` for an empty value, which means all
/// fragments.
///
/// Lenient in the form of the time: offsets whose `+` was decoded to a blank, any number of digits
/// in the fraction, lower-case letters, no zone (UTC). Digits after microseconds are dropped, which
/// makes the time earlier: the client reads a fragment twice, and misses none.
///
/// # Examples
/// ```
/// use abreast_sdshare::parse_since;
///
/// // The `+` of the offset was decoded to a blank.
/// let since = parse_since("2026-03-01T10:00:00 01:00")?.expect("the value has a time");
/// assert_eq!(since.to_string(), "2026-03-01T09:00:00Z");
/// assert_eq!(parse_since("")?, None);
/// assert!(parse_since("yesterday").is_err());
/// # Ok::<(), abreast_sdshare::SinceError>(())
/// ```
///
/// # Errors
/// The value is not a time.
pub fn parse_since(value: &str) -> Result<Option<Timestamp>, SinceError> {
    if value.trim_ascii().is_empty() {
        return Ok(None);
    }
    match read_time(value) {
        Ok(read) => Ok(Some(read.time)),
        Err(cause) => Err(SinceError { value: excerpt(value), cause }),
    }
}

/// Reads `since` from a query; `None` if it is missing or empty. If there are several, the earliest
/// is used, so that no requested fragment is missing.
///
/// # Examples
/// ```
/// use abreast_sdshare::since_in_query;
///
/// let since = since_in_query("collection=coins&since=2026-03-01T09%3A00%3A00Z")?;
/// assert_eq!(since.map(|time| time.to_string()).as_deref(), Some("2026-03-01T09:00:00Z"));
/// # Ok::<(), abreast_sdshare::SinceError>(())
/// ```
///
/// # Errors
/// A value is not a time.
pub fn since_in_query(query: &str) -> Result<Option<Timestamp>, SinceError> {
    let mut earliest: Option<Timestamp> = None;
    for value in query_values(query, "since") {
        let Some(time) = parse_since(&value)? else { return Ok(None) };
        earliest = Some(earliest.map_or(time, |earlier| earlier.min(time)));
    }
    Ok(earliest)
}

/// The decoded values of a parameter in a query. A `+` is not decoded to a blank: in times it is
/// the sign of an offset, and they do not contain blanks.
fn query_values<'q>(query: &'q str, name: &str) -> impl Iterator<Item = Cow<'q, str>> {
    query.split('&').filter_map(move |pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then(|| percent_decode_str(value).decode_utf8_lossy())
    })
}

/// The address of a fragments feed with `since` [sdshare §Fragments Feed].
///
/// The address may have a query already; a `since` in it is replaced. The time is written in UTC,
/// so that it needs no encoding.
///
/// # Examples
/// ```
/// use abreast_sdshare::with_since;
/// use abreast_webtypes::Timestamp;
///
/// let url = with_since("http://example.org/feed?id=7#top", Timestamp::from_seconds(1));
/// assert_eq!(url, "http://example.org/feed?id=7&since=1970-01-01T00:00:01.000000Z");
/// ```
pub fn with_since(feed: &str, since: Timestamp) -> String {
    let mut out = without_since(feed);
    out.push(if out.contains('?') { '&' } else { '?' });
    out.push_str("since=");
    out.push_str(&stamp(since));
    out
}

/// The address of a fragments feed for all fragments, with neither `since` nor a URI fragment.
///
/// # Examples
/// ```
/// use abreast_sdshare::without_since;
///
/// let last = "https://museum.example/fragments?set=coins&since=2026-03-01T09:00:00Z";
/// assert_eq!(without_since(last), "https://museum.example/fragments?set=coins");
/// ```
pub fn without_since(feed: &str) -> String {
    let feed = abreast_webtypes::without_fragment(feed);
    let (address, query) = feed.split_once('?').unwrap_or((feed, ""));
    let mut out = String::with_capacity(feed.len() + 40);
    out.push_str(address);
    let mut separator = '?';
    let others =
        query.split('&').filter(|pair| !pair.is_empty() && pair.split('=').next() != Some("since"));
    for pair in others {
        out.push(separator);
        out.push_str(pair);
        separator = '&';
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn since(query: &str) -> Option<String> {
        since_in_query(query).unwrap().map(stamp)
    }

    #[test]
    fn since_is_read_however_clients_encode_it() {
        let at_ten = Some("2011-03-21T13:49:23.000000Z".to_owned());
        for query in [
            "since=2011-03-21T13:49:23Z",
            "since=2011-03-21T13%3A49%3A23Z",
            "since=2011-03-21T14:49:23%2B01:00",
            "since=2011-03-21T14:49:23+01:00",
            "since=2011-03-21T14:49:23%2001:00",
            "since=2011-03-21t13:49:23z",
            "since=2011-03-21T13:49:23",
            "x=1&since=2011-03-21T13:49:23.0000000Z&y",
            "since=2011-03-21T13:49:23Z&since=2012-01-01T00:00:00Z",
        ] {
            assert_eq!(since(query), at_ten, "{query}");
        }
    }

    #[test]
    fn no_since_means_all_fragments() {
        for query in ["", "x=1", "since=", "since", "since=%20", "Since=yesterday"] {
            assert_eq!(since(query), None, "{query}");
        }
    }

    #[test]
    fn a_since_that_is_no_time_is_refused_with_help() {
        let error = since_in_query("since=yester%00day").unwrap_err().to_string();
        assert!(error.starts_with("`since` is \"yester\\0day\": not a W3C Datetime"), "{error}");
        assert!(error.contains("help: write the time as Atom does"), "{error}");
        for query in ["since=0", "since=1300715363", "since=2011-13-01T00:00:00Z", "since=%ff"] {
            assert!(since_in_query(query).is_err(), "{query}");
        }
        assert!(
            since_in_query(&format!("since={}", "9".repeat(100_000)))
                .unwrap_err()
                .to_string()
                .len()
                < 400
        );
    }

    #[test]
    fn since_is_added_to_any_address() {
        let time = Timestamp::from_micros(1_300_715_363_000_001);
        let text = "since=2011-03-21T13:49:23.000001Z";
        for (feed, expected) in [
            ("http://e.org/f", format!("http://e.org/f?{text}")),
            ("http://e.org/f?", format!("http://e.org/f?{text}")),
            ("http://e.org/f?a=1&b", format!("http://e.org/f?a=1&b&{text}")),
            ("http://e.org/f?since=x&a", format!("http://e.org/f?a&{text}")),
            ("http://e.org/f#x?y", format!("http://e.org/f?{text}")),
        ] {
            assert_eq!(with_since(feed, time), expected);
            let without =
                expected.replace(&format!("?{text}"), "").replace(&format!("&{text}"), "");
            assert_eq!(without_since(&expected), without);
        }
    }

    proptest! {
        #[test]
        fn what_a_client_adds_is_what_a_server_reads(
            micros in Timestamp::MIN.as_micros()..=Timestamp::MAX.as_micros(),
            query in "[a-z=&?]{0,12}",
        ) {
            let time = Timestamp::from_micros(micros);
            let url = with_since(&format!("http://e.org/f?{query}"), time);
            let (_, query) = url.split_once('?').unwrap();
            prop_assert_eq!(since_in_query(query), Ok(Some(time)));
        }

        #[test]
        fn no_query_panics(query: String) {
            let _ = since_in_query(&query);
            let _ = with_since(&query, Timestamp::from_seconds(0));
        }
    }
}
