//! `/timegate/{URI}`: redirects to the version at a date [rfc7089 §4.2.1].
//!
//! The default is the newest version; a date before the first version selects the first. An invalid
//! date is refused with 400, since the intended version is unknown [rfc7089 §4.5.3].

use crate::message::conditional::seconds;
use crate::message::respond::{Answer, problem};
use crate::routes::memento::{VersionedResource, header, redirect, with};
use crate::site::served::Site;
use abreast_source::versions::History;
use abreast_webtypes::decode_segment;
use http::header::{CACHE_CONTROL, LINK, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::io;
use std::sync::Arc;

const ACCEPT_DATETIME: HeaderName = HeaderName::from_static("accept-datetime");

pub(crate) async fn answer(site: &Arc<Site>, uri: &str, headers: &HeaderMap) -> io::Result<Answer> {
    let vary = (VARY, HeaderValue::from_static("Accept-Datetime"));
    let read = |date: &HeaderValue| seconds(date.to_str().ok()?.trim());
    let wanted = match headers.get(ACCEPT_DATETIME).map(read) {
        None => None,
        Some(Some(seconds)) => Some(seconds),
        Some(None) => {
            let detail = "`Accept-Datetime` is no HTTP date; write it as in `Tue, 01 Sep 2026 20:30:00 GMT`, in \
                              GMT, or leave it out for the newest version";
            return Ok(with(problem(StatusCode::BAD_REQUEST, detail), vec![vary]));
        }
    };
    for asked in VersionedResource::by_uri(site, &whole(uri)) {
        let found = asked.find(site, move |log, set, key| match wanted {
            Some(seconds) => History::at(log, set, key, seconds),
            None => History::newest(log, set, key),
        });
        match found.await? {
            Ok(Some(history)) => {
                let links = (LINK, header(&history.links(&asked.urls, &asked.key, true)));
                let mut answer = redirect(&asked.urls.memento(&asked.key, history.chosen.time));
                // The answer changes with the next version.
                answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                return Ok(with(answer, vec![vary, links]));
            }
            Ok(None) => {}
            Err(refusal) => return Ok(with(refusal, vec![vary])),
        }
    }
    Ok(with(
        problem(StatusCode::NOT_FOUND, "no version of such a resource is kept here"),
        vec![vary],
    ))
}

/// A URI in a path. A client that follows the template of host-meta encodes the whole URI
/// [rfc6415 §3.1.1]; some intermediaries merge two slashes into one.
pub(crate) fn whole(uri: &str) -> String {
    let is_encoded = ["http%3a", "https%3a"].iter().any(|scheme| {
        uri.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    if is_encoded && let Ok(decoded) = String::from_utf8(decode_segment(uri.as_bytes())) {
        return decoded;
    }
    for scheme in ["http:/", "https:/"] {
        if let Some(rest) = uri.strip_prefix(scheme)
            && !rest.starts_with('/')
        {
            return format!("{scheme}/{rest}");
        }
    }
    uri.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_that_lost_a_slash_is_made_whole() {
        assert_eq!(whole("http:/example.org/a//b"), "http://example.org/a//b");
        assert_eq!(whole("https://example.org/a"), "https://example.org/a");
        assert_eq!(whole("http://example.org/http:/x"), "http://example.org/http:/x");
    }

    #[test]
    fn a_uri_that_is_encoded_as_a_whole_is_decoded_once() {
        assert_eq!(whole("http%3A%2F%2Fexample.org%2Fa%2520b%3Fc"), "http://example.org/a%20b?c");
        assert_eq!(whole("https%3a%2f%2fexample.org%2fa"), "https://example.org/a");
        assert_eq!(whole("http://example.org/http%3A"), "http://example.org/http%3A");
        assert_eq!(whole("http%3A%2F%2F%FF"), "http%3A%2F%2F%FF");
    }
}
