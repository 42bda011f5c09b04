//! Conditional requests: If-None-Match, If-Modified-Since, If-Match, If-Unmodified-Since [rfc9110
//! §13].

use http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, HeaderName, Method};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The preconditions of a GET or HEAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precondition {
    /// Send the representation, with the requested status.
    Send,
    /// 304: the client has the present version.
    NotModified,
    /// 412: a precondition is false.
    Failed,
}

/// Evaluates the preconditions for a representation with this entity tag (quoted, strong) and
/// modification time in seconds. With `is_coarse`, several versions may have this time: then a
/// different time shows that the representation was modified, but an equal time does not show the
/// opposite. If the modification time is unknown, `If-Unmodified-Since` is ignored
/// [rfc9110 §13.1.4]; a known time is used even if it is not sent.
pub(crate) fn judge(
    headers: &HeaderMap,
    tag: &str,
    modified: Option<i64>,
    is_coarse: bool,
) -> Precondition {
    let date = |name| date_of(headers, name);
    if headers.contains_key(IF_MATCH) {
        if !tags(headers, &IF_MATCH).any(|wanted| wanted == "*" || wanted == tag) {
            return Precondition::Failed;
        }
    } else if let (Some(since), Some(modified)) = (unmodified_since(headers), modified)
        && modified > since
    {
        return Precondition::Failed;
    }
    if headers.contains_key(IF_NONE_MATCH) {
        let matches = tags(headers, &IF_NONE_MATCH)
            .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag);
        return if matches { Precondition::NotModified } else { Precondition::Send };
    }
    match (date(IF_MODIFIED_SINCE), modified.filter(|_| !is_coarse)) {
        // The client has these bytes only if the dates are equal: an older file may have replaced a
        // newer one.
        (Some(since), Some(modified)) if modified == since => Precondition::NotModified,
        _ => Precondition::Send,
    }
}

/// The date of a field. Invalid dates and lists of dates are ignored, as the RFC requires.
fn date_of(headers: &HeaderMap, name: HeaderName) -> Option<i64> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    seconds(value.to_str().ok()?)
}

/// The date of `If-Unmodified-Since`, which is ignored if the request has `If-Match`
/// [rfc9110 §13.1.4].
pub(crate) fn unmodified_since(headers: &HeaderMap) -> Option<i64> {
    if headers.contains_key(IF_MATCH) { None } else { date_of(headers, IF_UNMODIFIED_SINCE) }
}

fn tags<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let fields = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    fields.flat_map(|list| list.split(',').map(str::trim))
}

/// Parses an HTTP date to seconds since 1970.
pub(crate) fn seconds(date: &str) -> Option<i64> {
    let time = httpdate::parse_http_date(date).ok()?;
    Some(match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_secs() as i64,
        Err(before) => -(before.duration().as_secs() as i64),
    })
}

/// Formats seconds since 1970 as an HTTP date; times before 1970 become 1970.
pub(crate) fn http_date(seconds: i64) -> String {
    let time: SystemTime =
        UNIX_EPOCH + Duration::from_secs(seconds.clamp(0, 253_402_300_799) as u64);
    httpdate::fmt_http_date(time)
}

/// Whether a request may be redirected to an object store. A URL is valid for GET only, and object stores answer
/// one range of bytes at most. Clients repeat the conditions of the request there: an entity tag of this server
/// differs from the one of the store, which is right for `If-None-Match` and `If-Range` only, and so does the
/// time of an object.
pub(crate) fn may_redirect(method: &Method, request: &HeaderMap) -> bool {
    let has = |name: HeaderName| request.contains_key(name);
    let has_ranges = request.get(RANGE).is_some_and(|range| range.as_bytes().contains(&b','));
    let range_by_time =
        request.get(IF_RANGE).is_some_and(|known| !known.as_bytes().starts_with(b"\""));
    let by_time = has(IF_MODIFIED_SINCE) && !has(IF_NONE_MATCH) || range_by_time;
    let is_conditional = by_time || has(IF_MATCH) || has(IF_UNMODIFIED_SINCE);
    method == Method::GET && !has_ranges && !is_conditional
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn judged(headers: &[(http::HeaderName, &str)]) -> Precondition {
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        judge(&headers, "\"x\"", Some(1_000_000_000), false)
    }

    #[test]
    fn only_requests_that_a_bucket_answers_alike_are_redirected() {
        let may = |method: Method, headers: &[(HeaderName, &'static str)]| {
            let headers = headers.iter();
            let headers = headers
                .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
                .collect();
            may_redirect(&method, &headers)
        };
        let date = "Sun, 09 Sep 2001 01:46:39 GMT";
        assert!(may(Method::GET, &[]));
        assert!(may(Method::GET, &[(RANGE, "bytes=5-"), (IF_RANGE, "\"x\"")]));
        assert!(may(Method::GET, &[(IF_NONE_MATCH, "\"y\""), (IF_MODIFIED_SINCE, date)]));
        assert!(!may(Method::HEAD, &[]));
        assert!(!may(Method::GET, &[(RANGE, "bytes=0-1, 5-6")]));
        for (name, value) in [
            (IF_MODIFIED_SINCE, date),
            (IF_UNMODIFIED_SINCE, date),
            (IF_RANGE, date),
            (IF_MATCH, "*"),
        ] {
            assert!(!may(Method::GET, &[(name.clone(), value)]), "{name}");
        }
    }

    #[test]
    fn dates_that_are_lists_or_not_comparable_are_ignored() {
        let early = HeaderValue::from_static("Sun, 09 Sep 2001 01:46:39 GMT");
        let sent = HeaderValue::from_static("Sun, 09 Sep 2001 01:46:40 GMT");
        let judge_all = |name: HeaderName, dates: &[&HeaderValue], modified| {
            let headers = dates.iter().map(|date| (name.clone(), (*date).clone())).collect();
            judge(&headers, "\"x\"", modified, false)
        };
        let (failed, known) = (Precondition::Failed, Some(1_000_000_000));
        assert_eq!(judge_all(IF_UNMODIFIED_SINCE, &[&early], known), failed);
        assert_eq!(judge_all(IF_UNMODIFIED_SINCE, &[&sent], known), Precondition::Send);
        assert_eq!(judge_all(IF_UNMODIFIED_SINCE, &[&early, &early], known), Precondition::Send);
        assert_eq!(judge_all(IF_UNMODIFIED_SINCE, &[&early], None), Precondition::Send);
        assert_eq!(judge_all(IF_MODIFIED_SINCE, &[&sent], known), Precondition::NotModified);
        assert_eq!(judge_all(IF_MODIFIED_SINCE, &[&sent, &sent], known), Precondition::Send);
    }

    #[test]
    fn entity_tags_win_over_dates() {
        let later = "Sun, 09 Sep 2001 01:46:41 GMT";
        assert_eq!(judged(&[]), Precondition::Send);
        assert_eq!(judged(&[(IF_NONE_MATCH, "\"y\", W/\"x\"")]), Precondition::NotModified);
        assert_eq!(judged(&[(IF_NONE_MATCH, "*")]), Precondition::NotModified);
        assert_eq!(
            judged(&[(IF_NONE_MATCH, "\"y\""), (IF_MODIFIED_SINCE, later)]),
            Precondition::Send
        );
        assert_eq!(judged(&[(IF_MODIFIED_SINCE, later)]), Precondition::Send, "not the one sent");
        let sent = "Sun, 09 Sep 2001 01:46:40 GMT";
        assert_eq!(judged(&[(IF_MODIFIED_SINCE, sent)]), Precondition::NotModified);
        assert_eq!(
            judged(&[(IF_MODIFIED_SINCE, "Sun, 09 Sep 2001 01:46:39 GMT")]),
            Precondition::Send
        );
        assert_eq!(judged(&[(IF_MODIFIED_SINCE, "soon")]), Precondition::Send);
        assert_eq!(judged(&[(IF_MATCH, "\"y\"")]), Precondition::Failed);
        assert_eq!(
            judged(&[(IF_UNMODIFIED_SINCE, "Sun, 09 Sep 2001 01:46:39 GMT")]),
            Precondition::Failed
        );
    }
}
