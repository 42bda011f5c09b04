//! What a client accepts [rfc9110 §12.5.1].

use http::HeaderMap;
use http::header::ACCEPT;

/// What the client accepts; several headers count as one.
pub(crate) fn accept_of(headers: &HeaderMap) -> Option<String> {
    let values: Vec<&str> =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// The place of the media type for a client among those that are offered; `None` when it accepts
/// none of them.
pub(crate) fn choose(headers: &HeaderMap, offered: &[&str]) -> Option<usize> {
    abreast_rdf::choose(accept_of(headers).as_deref(), offered)
}
