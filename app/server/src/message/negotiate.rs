//! Content negotiation by `Accept` [rfc9110 §12.5.1].

use http::HeaderMap;
use http::header::ACCEPT;

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

#[cfg(test)]
mod tests {
    use super::*;

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
