//! The path prefix of the public URL: proxies may remove it or not.

use http::Uri;
use http::uri::PathAndQuery;

/// The first parts of the paths of the server itself.
const OWN: [&str; 14] = [
    "",
    ".well-known",
    "about.html",
    "api",
    "hub",
    "livez",
    "metrics",
    "readyz",
    "robots.txt",
    "sdshare",
    "sitemap.xml",
    "sourcedescription",
    "timegate",
    "timemap",
];

/// The target without the path of the public URL `base`, if a proxy left it there. `is_set` finds sets by their names: a
/// set may have the name of the prefix, and its addresses are not those of the prefix then.
pub(crate) fn without_prefix(
    target: &Uri,
    base: &str,
    is_set: impl Fn(&str) -> bool,
) -> Option<Uri> {
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
    let path = below[1..].split(['?']).next().unwrap_or_default();
    let (first, more) =
        path.split_once('/').map_or((path, None), |(first, more)| (first, Some(more)));
    let name = prefix[1..].split('/').next().unwrap_or_default();
    if is_set(name) {
        // `/SET/` with the prefix removed, or the prefix alone: the set is the nearer one.
        let is_below = is_set(first)
            || (OWN.contains(&first)
                && !first.is_empty()
                && more.is_none_or(|more| !more.is_empty()));
        if !is_below {
            return None;
        }
    }
    Uri::try_from(PathAndQuery::try_from(below).ok()?.as_str()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_removed_once_and_only_where_it_is_one() {
        let of = |target: &str, base: &str| {
            let is_set = |name: &str| ["papers", "maps"].contains(&name);
            let uri = Uri::try_from(target).unwrap();
            without_prefix(&uri, base, is_set)
                .map_or_else(|| target.to_owned(), |uri| uri.to_string())
        };
        let base = "https://h.example/data/v1/";
        for (target, path) in [
            ("/data/v1/papers/capabilitylist.xml", "/papers/capabilitylist.xml"),
            ("/data/v1/papers/r/a%20b?c=/d", "/papers/r/a%20b?c=/d"),
            ("/data/v1", "/"),
            ("/data/v1/", "/"),
            ("/data/v1?x", "/?x"),
            ("/data/v1/api/v1/sets", "/api/v1/sets"),
            ("/data/v1/data/v1/x", "/data/v1/x"),
            ("/data/v10/x", "/data/v10/x"),
            ("/data/x", "/data/x"),
            ("/papers/capabilitylist.xml", "/papers/capabilitylist.xml"),
            ("/", "/"),
        ] {
            assert_eq!(of(target, base), path, "{target}");
            assert_eq!(of(target, "https://h.example/"), target, "without a prefix");
            assert_eq!(of(target, "https://h.example"), target, "without a prefix");
        }
        // A set with the name of the prefix.
        let base = "https://h.example/papers/";
        for (target, path) in [
            ("/papers/papers/resourcelist.xml", "/papers/resourcelist.xml"),
            ("/papers/maps/r/x", "/maps/r/x"),
            ("/papers/readyz", "/readyz"),
            ("/papers/api/v1/sets", "/api/v1/sets"),
            ("/papers/resourcelist.xml", "/papers/resourcelist.xml"),
            ("/papers/r/x", "/papers/r/x"),
            ("/papers/", "/papers/"),
            ("/papers", "/papers"),
            ("/maps/r/x", "/maps/r/x"),
        ] {
            assert_eq!(of(target, base), path, "{target}");
        }
    }
}
