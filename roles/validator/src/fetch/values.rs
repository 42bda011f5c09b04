//! Checks of attribute values: URIs, digests, media types, relations.

use abreast_webtypes::{Algorithm, Precision, SyntaxError, Timestamp, W3cDatetime, excerpt};
pub(crate) use abreast_webtypes::{NOT_ABSOLUTE, absolute_fault};
use std::time::SystemTime;

/// Whether a relation is registered or a URI [rs-core §7]. Relation types compare
/// case-insensitively [rfc8288 §2.1.1].
pub(crate) fn is_relation(token: &str) -> bool {
    if token.contains(':') {
        return url::Url::parse(token).is_ok();
    }
    abreast_webtypes::relation::is_registered(token)
}

/// An algorithm in a `hash` with two different digests.
pub(crate) fn twice_in_hash(value: &str) -> Option<&str> {
    let digests = || value.split_ascii_whitespace().filter_map(|token| token.split_once(':'));
    let is_same = |one: &str, other: &str| {
        let known = Algorithm::from_token(one.as_bytes());
        one.eq_ignore_ascii_case(other)
            || known.is_some() && known == Algorithm::from_token(other.as_bytes())
    };
    let differ = |(one, digest): (&str, &str), (other, another): (&str, &str)| {
        is_same(one, other) && !digest.eq_ignore_ascii_case(another)
    };
    digests()
        .enumerate()
        .find(|(at, own)| digests().take(*at).any(|before| differ(before, *own)))
        .map(|(_, (name, _))| name)
}

/// The message about an unusual spelling of an algorithm in a well-formed `hash`, or about a `hash`
/// without a known algorithm.
pub(crate) fn odd_algorithm(value: &str) -> Option<String> {
    let names =
        || value.split_ascii_whitespace().filter_map(|token| Some(token.split_once(':')?.0));
    let known = |name: &str| Algorithm::from_token(name.as_bytes());
    if let Some((name, known)) =
        names().find_map(|name| Some((name, known(name).filter(|known| known.token() != name)?)))
    {
        return Some(format!("the algorithm `{}` is written `{}`", excerpt(name), known.token()));
    }
    let name = names().next().filter(|_| names().all(|name| known(name).is_none()))?;
    Some(format!("readers do not know the algorithm `{}`", excerpt(name)))
}

/// Whether a text is a token [rfc9110 §5.6.2].
fn is_token(text: &str) -> bool {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_of_token)
}

/// Whether a value is a list of content codings [rfc9110 §8.4].
pub(crate) fn is_encoding(value: &str) -> bool {
    value.split(',').all(|coding| is_token(coding.trim_ascii()))
}

/// Whether a value is `type/subtype` with optional parameters [rfc9110 §8.3.1].
pub(crate) fn is_media_type(value: &str) -> bool {
    let (essence, parameters) = value.split_once(';').unwrap_or((value, ""));
    essence
        .trim_ascii()
        .split_once('/')
        .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
        && are_parameters(parameters)
}

/// Whether a text consists of parameters, whose values are tokens or quoted strings [rfc9110
/// §5.6.6].
fn are_parameters(text: &str) -> bool {
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(';') {
            rest = after.trim_ascii_start();
            continue;
        }
        let Some((name, value)) = rest.split_once('=') else { return false };
        let end = match value.strip_prefix('"') {
            None => value.find(';').unwrap_or(value.len()),
            Some(quoted) => {
                let mut is_escaped = false;
                let close = quoted.bytes().position(|byte| {
                    let closes = byte == b'"' && !is_escaped;
                    is_escaped = byte == b'\\' && !is_escaped;
                    closes
                });
                let Some(close) = close else { return false };
                close + 2
            }
        };
        let (value, after) = value.split_at(end);
        if !is_token(name) || !(value.starts_with('"') || is_token(value.trim_ascii_end())) {
            return false;
        }
        rest = after.trim_ascii_start();
        if !(rest.is_empty() || rest.starts_with(';')) {
            return false;
        }
    }
    true
}

/// The part of a media type before its parameters, in lower case.
pub(crate) fn essence(value: &str) -> String {
    value.split(';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase()
}

/// Most characters of a URI in a Sitemap [sitemap].
const SITEMAP_URI_MAX: usize = 2_047;

/// Number of characters of a `loc` that is too long [sitemap].
pub(crate) fn too_many_characters(loc: &str) -> Option<usize> {
    // A text never has more characters than bytes.
    let count = if loc.len() > SITEMAP_URI_MAX { loc.chars().count() } else { 0 };
    Some(count).filter(|count| *count > SITEMAP_URI_MAX)
}

/// Fault of a URI that must be absolute [rfc3986 §4.3].
pub(crate) fn uri_fault(uri: &str) -> Option<&'static str> {
    if let Some(fault) = absolute_fault(uri) {
        return Some(fault);
    }
    if !uri.bytes().fold(true, |good, byte| good & ALLOWED[usize::from(byte)]) {
        return Some("has characters that must be percent-encoded");
    }
    let mut rest = uri.as_bytes();
    while let Some(at) = memchr_percent(rest) {
        match rest.get(at + 1..at + 3) {
            Some([high, low]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest = &rest[at + 3..];
            }
            _ => return Some("has a `%` without two hex digits"),
        }
    }
    None
}

/// First part of a URI that is not in normal form [rfc3986 §6.2.2].
pub(crate) fn not_normal(uri: &str) -> Option<&'static str> {
    let (scheme, rest) = uri.split_once(':')?;
    if scheme.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some("has capitals in its scheme");
    }
    if rest.contains('#') {
        return Some("has a fragment, which is not part of a resource's URI in a list");
    }
    let rest = rest.strip_prefix("//")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some("has capitals in its host");
    }
    if scheme == "http" && authority.ends_with(":80")
        || scheme == "https" && authority.ends_with(":443")
    {
        return Some("has the default port");
    }
    let path = path.split('?').next().unwrap_or_default();
    if path.contains("/.") && path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Some("has dot segments");
    }
    let mut rest = path.as_bytes();
    while let Some(at) = memchr_percent(rest) {
        if rest[at + 1..].iter().take(2).any(u8::is_ascii_lowercase) {
            return Some("has lower-case hex digits");
        }
        rest = &rest[at + 1..];
    }
    None
}

fn memchr_percent(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'%')
}

/// Characters of a URI: unreserved, reserved and `%` [rfc3986 §2].
const ALLOWED: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 256 {
        let byte = i as u8;
        table[i] = byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'-' | b'.'
                    | b'_'
                    | b'~'
                    | b':'
                    | b'/'
                    | b'?'
                    | b'#'
                    | b'['
                    | b']'
                    | b'@'
                    | b'!'
                    | b'$'
                    | b'&'
                    | b'\''
                    | b'('
                    | b')'
                    | b'*'
                    | b'+'
                    | b','
                    | b';'
                    | b'='
                    | b'%'
            );
        i += 1;
    }
    table
};

/// Fault of a datetime that readers accept although W3C Datetime does not allow it [w3c-datetime].
pub(crate) fn datetime_fault(text: &str) -> Option<&'static str> {
    if text.contains(['t', 'z']) {
        return Some("`T` and `Z` are capital letters");
    }
    (text.get(17..19) == Some("60")).then_some("seconds are 00 to 59")
}

/// Whether the whole period of `one` precedes `other`. `2013` does not precede `2013-05`.
pub(crate) fn is_before(one: W3cDatetime, other: W3cDatetime) -> bool {
    if one.instant >= other.instant {
        return false;
    }
    let written = match one.precision {
        Precision::Year => 4,
        Precision::Month => 7,
        Precision::Day => 10,
        Precision::Minute => 16,
        Precision::Second | Precision::Fraction => return true,
    };
    one.instant.to_string()[..written] != other.instant.to_string()[..written]
}

/// Whether two times differ in the precision that they have in common.
pub(crate) fn differ(one: W3cDatetime, other: W3cDatetime) -> bool {
    is_before(one, other) || is_before(other, one)
}

/// Whether a media type is for XML or for gzip.
pub(crate) fn is_xml_or_packed(essence: &str) -> bool {
    essence.ends_with("/xml") || essence.ends_with("+xml") || essence.contains("gzip")
}

/// Message about a document in another encoding, which is read nevertheless.
pub(crate) const NOT_UTF_8: &str = "the document is in another encoding";

/// Most microseconds by which two clocks may differ.
const CLOCK_MICROS: i64 = 60_000_000;

/// The latest time that does not count as in the future. Clocks may differ by [`CLOCK_MICROS`].
pub(crate) fn a_moment_after(now: SystemTime) -> Timestamp {
    let seconds = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    Timestamp::from_seconds(i64::try_from(seconds).unwrap_or(i64::MAX)).plus_micros(CLOCK_MICROS)
}

/// Message of an error without its help.
pub(crate) fn first_line(error: &SyntaxError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_registered_or_uris() {
        for good in [
            "up",
            "UP",
            "describedby",
            "http://www.openarchives.org/rs/terms/patch",
            "urn:x:y",
            "timegate",
        ] {
            assert!(is_relation(good), "{good}");
        }
        for bad in ["", "parent", "rs/patch"] {
            assert!(!is_relation(bad), "{bad}");
        }
    }

    #[test]
    fn invalid_uris_are_reported_with_the_reason() {
        assert_eq!(uri_fault("http://example.org/a%20b?c=d&e=[f]"), None);
        for good in [
            "urn:nbn:de:1",
            "http://u:p@h:8080/",
            "http://[::1]:1/",
            "http://1.2.3.4",
            "http://h?q",
        ] {
            assert_eq!(uri_fault(good), None, "{good}");
        }
        for (bad, why) in [
            ("http:x", "has no `//` behind its scheme"),
            ("HTTP://", "has no host"),
            ("http:///x", "has no host"),
            ("http://?x", "has no host"),
            ("http://u@/x", "has no host"),
            ("http://:80/", "has no host"),
            ("http://h:99999/", "has a port that is not a number up to 65535"),
            ("http://h:x/", "has a port that is not a number up to 65535"),
            ("http://[zz]/", "has a host that is not a name or an address"),
            ("https://1.2.3.999/", "has a host that is not a name or an address"),
        ] {
            assert_eq!(uri_fault(bad), Some(why), "{bad}");
        }
        assert_eq!(uri_fault("a/b"), Some("is not absolute"));
        assert_eq!(
            uri_fault("http://example.org/ä"),
            Some("has characters that must be percent-encoded")
        );
        assert_eq!(uri_fault("http://example.org/%2"), Some("has a `%` without two hex digits"));
        assert_eq!(not_normal("http://example.org/A%2F"), None);
        assert_eq!(not_normal("http://example.org/a.b/..c"), None);
        for uri in [
            "HTTP://h/",
            "http://H/",
            "http://h:80/",
            "http://h/a/../b",
            "http://h/%2f",
            "http://h/a#b",
        ] {
            assert!(not_normal(uri).is_some(), "{uri}");
        }
    }

    #[test]
    fn one_algorithm_has_one_digest() {
        for (value, name) in [
            ("md5:00 sha-1:11", None),
            ("md5:0a md5:0a", None),
            ("md5:0a MD5:0A", None),
            ("sha256:0a sha-256:0a", None),
            ("md5:0a md5:0b", Some("md5")),
            ("sha256:0a md5:0c sha-256:0b", Some("sha-256")),
            ("whirlpool:0a WHIRLPOOL:0b", Some("WHIRLPOOL")),
        ] {
            assert_eq!(twice_in_hash(value), name, "{value}");
        }
    }

    #[test]
    fn odd_names_of_algorithms_are_named() {
        for (value, announced) in [
            ("md5:00", None),
            ("whirlpool:00 md5:00", None),
            ("whirlpool:00", Some("readers do not know the algorithm `whirlpool`")),
            ("sha256:00", Some("the algorithm `sha256` is written `sha-256`")),
            ("md5:00 SHA-1:00", Some("the algorithm `SHA-1` is written `sha-1`")),
        ] {
            assert_eq!(odd_algorithm(value).as_deref(), announced, "{value}");
        }
    }

    #[test]
    fn characters_of_a_loc_are_counted() {
        for (loc, count) in [
            ("a".repeat(2_047), None),
            ("a".repeat(2_048), Some(2_048)),
            ("\u{e4}".repeat(2_047), None),
            ("\u{e4}".repeat(2_048), Some(2_048)),
        ] {
            assert_eq!(too_many_characters(&loc), count, "{} bytes", loc.len());
        }
    }

    #[test]
    fn media_types_may_have_parameters() {
        for good in [
            "text/html",
            "application/ld+json",
            "text/html; charset=utf-8",
            "a/b;c=d ; e=\"f;\\\"g\"",
            "a/b;",
        ] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in [
            "",
            "html",
            "text/",
            "text html/x",
            "/x",
            "a/b; c",
            "a/b; c=",
            "a/b; c=\"d",
            "a/b; c=\"d\"e",
            "a/b c",
        ] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }
}
