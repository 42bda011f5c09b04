//! The path of the public URL, which some proxies do not remove from requests.

use http::Uri;
use http::uri::PathAndQuery;

/// Removes the path of the public URL `base` from the target; `None` if the target has another
/// prefix. The prefix is removed only once: a path behind it that equals the prefix again is part
/// of the target.
pub(crate) fn without_prefix(target: &Uri, base: &str) -> Option<Uri> {
    let (_, rest) = base.split_once("://")?;
    let prefix = rest.find('/').map(|at| rest[at..].trim_end_matches('/'))?;
    if prefix.is_empty() {
        return None;
    }
    let below = target.path_and_query()?.as_str().strip_prefix(prefix)?;
    let below = match below.as_bytes().first() {
        Some(b'/') => below.to_owned(),
        None | Some(b'?') => format!("/{below}"),
        Some(_) => return None,
    };
    Uri::try_from(PathAndQuery::try_from(below).ok()?.as_str()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_removed_once_and_only_where_it_is_one() {
        let of = |target: &str, base: &str| {
            let uri = Uri::try_from(target).unwrap();
            without_prefix(&uri, base).map_or_else(|| target.to_owned(), |uri| uri.to_string())
        };
        let base = "https://h.example/data/v1/";
        for (target, path) in [
            ("/data/v1/papers/capabilitylist.xml", "/papers/capabilitylist.xml"),
            ("/data/v1/papers/r/a%20b?c=/d", "/papers/r/a%20b?c=/d"),
            ("/data/v1", "/"),
            ("/data/v1/", "/"),
            ("/data/v1?x", "/?x"),
            ("/data/v1/api/v1/sets", "/api/v1/sets"),
            ("/data/v1/data/v1/metrics", "/data/v1/metrics"),
            ("/data/v10/x", "/data/v10/x"),
            ("/data/x", "/data/x"),
            ("/papers/capabilitylist.xml", "/papers/capabilitylist.xml"),
            ("/", "/"),
        ] {
            assert_eq!(of(target, base), path, "{target}");
            assert_eq!(of(target, "https://h.example/"), target, "without a prefix");
            assert_eq!(of(target, "https://h.example"), target, "without a prefix");
        }
        // The name of a set, or of a part of the server.
        for (target, base, path) in [
            ("/papers/papers/r/x", "https://h.example/papers/", "/papers/r/x"),
            ("/hub/hub", "https://h.example/hub/", "/hub"),
            ("/api/api/v1/sets", "https://h.example/api/", "/api/v1/sets"),
        ] {
            assert_eq!(of(target, base), path, "{target}");
        }
    }
}
