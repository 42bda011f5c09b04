//! Content negotiation by `Accept` [rfc9110 §12.5.1].

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_LANGUAGE};

/// The value of `Accept`; several header lines are joined.
pub(crate) fn accept_of(headers: &HeaderMap) -> Option<String> {
    let values: Vec<&str> =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// Whether the client lists a media type explicitly, with at least the weight of the usual type. A
/// wildcard does not count.
pub(crate) fn prefers(headers: &HeaderMap, media_type: &str, usual: &str) -> bool {
    let accept = accept_of(headers).unwrap_or_default();
    let named = accept.split(',').filter_map(|range| range.split(';').next());
    named.map(str::trim).any(|named| named.eq_ignore_ascii_case(media_type))
        && choose(headers, &[media_type, usual]) == Some(0)
}

/// Index of the offered media type for a client; `None` if it does not accept any.
pub(crate) fn choose(headers: &HeaderMap, offered: &[&str]) -> Option<usize> {
    abreast_rdf::choose(accept_of(headers).as_deref(), offered)
}

/// Most languages of a reader that are used.
const LANGUAGES: usize = 8;

/// The languages that a reader prefers, the first most, each followed by its general form: `de-AT`
/// by `de` [rfc9110 §12.5.4].
pub(crate) fn languages(headers: &HeaderMap) -> Vec<String> {
    let fields = headers.get_all(ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok());
    let mut languages = Vec::new();
    for range in fields.flat_map(|value| value.split(',')).take(4 * LANGUAGES) {
        let mut parts = range.split(';').map(str::trim);
        let tag = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
        let is_tag = tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if is_tag && !tag.is_empty() && weight > 0.0 {
            languages.push((tag.to_ascii_lowercase(), weight));
        }
    }
    languages.sort_by(|(_, one), (_, two): &(String, f64)| two.total_cmp(one));
    let all = languages.into_iter().take(LANGUAGES).flat_map(|(tag, _)| {
        let general = tag.split('-').next().map(str::to_owned);
        [Some(tag), general].into_iter().flatten()
    });
    let mut preferred: Vec<String> = Vec::new();
    for tag in all {
        if !preferred.contains(&tag) {
            preferred.push(tag);
        }
    }
    preferred
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_sorted_by_weight() {
        let headers =
            [(ACCEPT_LANGUAGE, "en;q=0.5, de-AT, *;q=0.1, fr;q=0, it;q=0.8".parse().unwrap())];
        assert_eq!(languages(&headers.into_iter().collect()), ["de-at", "de", "it", "en"]);
        assert!(languages(&HeaderMap::new()).is_empty());
    }

    #[test]
    fn a_media_type_that_is_named_is_preferred() {
        let of = |accept: &[&str]| {
            let headers = accept.iter().map(|value| (ACCEPT, value.parse().unwrap())).collect();
            prefers(&headers, "application/x-ndjson", "application/json")
        };
        for accept in [
            &["application/x-ndjson"][..],
            &["application/json", "Application/X-NDJSON"],
            &["application/x-ndjson, */*"],
            &["application/json;q=0.5, application/x-ndjson;q=0.5"],
        ] {
            assert!(of(accept), "{accept:?}");
        }
        for accept in [
            &[][..],
            &["*/*"],
            &["application/*"],
            &["application/json"],
            &["application/x-ndjson;q=0"],
            &["application/x-ndjson; q=0.000, */*"],
            &["application/x-ndjson;q=0.5, application/json"],
            &["application/x-ndjson-seq"],
        ] {
            assert!(!of(accept), "{accept:?}");
        }
    }
}
