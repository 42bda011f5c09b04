//! Parameters of the addresses of pages.

use crate::publish::Reader;
use abreast_webtypes::{Timestamp, W3cDatetime};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Longest value of a parameter, in bytes.
const MAX_VALUE: usize = 8 << 10;

/// Characters of a value that are encoded.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b':');

/// The values of these parameters, in their order; missing ones are empty. `None` if
/// there is another parameter, or a value is not UTF-8 or too long.
pub(super) fn values<const N: usize>(query: &str, names: [&str; N]) -> Option<[String; N]> {
    let mut values = [const { String::new() }; N];
    for field in query.split('&').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let at = names.iter().position(|known| *known == name)?;
        // Forms of pages write spaces as `+`.
        let value = value.replace('+', " ");
        let decoded = percent_decode_str(&value).decode_utf8().ok()?;
        if decoded.len() > MAX_VALUE {
            return None;
        }
        decoded.trim_matches('\0').clone_into(&mut values[at]);
    }
    Some(values)
}

/// A URL with these parameters; empty ones are left out.
pub(super) fn url(address: &str, parameters: &[(&str, &str)]) -> String {
    let mut url = address.to_owned();
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        url.push(if url.len() == address.len() { '?' } else { '&' });
        url.push_str(name);
        url.push('=');
        url.extend(utf8_percent_encode(value, ENCODED));
    }
    url
}

/// The reader of a page: the languages in its address, otherwise those of the browser; `None` if the
/// address has others than language tags.
pub(super) fn reader(in_address: &str, browser: &Reader) -> Option<Reader> {
    if in_address.is_empty() { Some(browser.clone()) } else { Reader::of_address(in_address) }
}

/// The start of a day, from a date field of a form.
pub(super) fn day(text: &str) -> Option<Timestamp> {
    (text.len() == 10)
        .then(|| W3cDatetime::parse(text.as_bytes()).ok())
        .flatten()
        .map(|day| day.instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_written_and_read() {
        let value = "a b&c=d/é+%";
        let written = url("x", &[("q", value), ("none", ""), ("after", "k")]);
        assert_eq!(written, "x?q=a%20b%26c%3Dd/%C3%A9%2B%25&after=k");
        let read = values(written.split_once('?').unwrap().1, ["after", "q", "none"]);
        assert_eq!(read, Some(["k".to_owned(), value.to_owned(), String::new()]));
        assert_eq!(values("q=a+b", ["q"]), Some(["a b".to_owned()]));
        for bad in ["other=1", "q=%FF", &format!("q={}", "x".repeat(MAX_VALUE + 1))] {
            assert_eq!(values(bad, ["q"]), None);
        }
        assert_eq!(
            day("2026-03-01").map(|day| day.to_string()).as_deref(),
            Some("2026-03-01T00:00:00Z")
        );
        assert_eq!((day("2026-03"), day("")), (None, None));
    }
}
