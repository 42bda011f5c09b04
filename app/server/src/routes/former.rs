//! Addresses of sets that have another name now, or were removed.

use crate::message::respond::{Answer, problem, text};
use crate::site::served::Site;
use abreast_store::NowAt;
use abreast_webtypes::visible;
use http::header::{CACHE_CONTROL, LOCATION};
use http::{HeaderValue, Method, StatusCode, Uri};

/// The beginning of the addresses of sets in the API.
const API: &str = "/api/v1/sets/";

/// The answer for an address of a set that the site does not have any more: 308 to the same address of the set, which
/// keeps the method [rfc9110 §15.4.9], or 410 if it was removed [rfc9110 §15.5.11]. `None` for other addresses.
pub(crate) fn answer(site: &Site, method: &Method, uri: &Uri) -> Option<Answer> {
    if !site.sets.has_former() {
        return None;
    }
    let path = uri.path();
    let base = site.publisher.urls().base();
    let found = Found::in_path(path, base)?;
    if site.sets.find(found.slug).is_some() {
        return None;
    }
    let is_reader = matches!(*method, Method::GET | Method::HEAD);
    if !(is_reader || found.is_of_api() || super::callback::is_path(path)) {
        return None;
    }
    let to = match site.sets.former(found.slug)? {
        NowAt::Removed => {
            let detail = format!("the set `{}` was removed", found.slug);
            return Some(problem(StatusCode::GONE, &detail));
        }
        // Not published: its addresses would be answered with 404.
        NowAt::Name(name) => {
            site.sets.find(name)?;
            format!("{base}{}{name}{}", found.before, found.rest)
        }
        // The other server has other tokens and versions.
        NowAt::Url(url) if found.before.is_empty() => {
            format!("{url}{}", found.rest.trim_start_matches('/'))
        }
        NowAt::Url(_) => return None,
    };
    let to = match uri.query() {
        Some(query) => format!("{to}?{query}"),
        None => to,
    };
    let mut answer = text("text/plain; charset=utf-8", format!("see {}\n", visible(&to)));
    *answer.status_mut() = StatusCode::PERMANENT_REDIRECT;
    let headers = answer.headers_mut();
    // A set may get the old name again.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(LOCATION, HeaderValue::from_str(&to).ok()?);
    Some(answer)
}

/// The name of a set in a path.
#[derive(Debug, PartialEq, Eq)]
struct Found<'p> {
    /// The path before the name, without `/` at the beginning.
    before: &'p str,
    slug: &'p str,
    /// The path after the name, from `/` on.
    rest: &'p str,
}

impl<'p> Found<'p> {
    fn in_path(path: &'p str, base: &str) -> Option<Self> {
        let own = path.strip_prefix('/')?;
        let start = if let Some(rest) = path.strip_prefix(API) {
            path.len() - rest.len()
        } else if own.starts_with("timegate/") || own.starts_with("timemap/") {
            // The URI of a resource follows.
            path.find(base)? + base.len()
        } else {
            1
        };
        let (before, rest) = (path.get(1..start)?, path.get(start..)?);
        let slug = rest.split('/').next().filter(|slug| !slug.is_empty())?;
        Some(Self { before, slug, rest: &rest[slug.len()..] })
    }

    fn is_of_api(&self) -> bool {
        self.before.len() + 1 == API.len() && API.ends_with(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_set_is_found_in_paths() {
        let base = "http://a.example/data/";
        let found = |path| {
            let found = Found::in_path(path, base)?;
            Some((found.before, found.slug, found.rest, found.is_of_api()))
        };
        for (path, expected) in [
            ("/old", Some(("", "old", "", false))),
            ("/old/r/a%20b", Some(("", "old", "/r/a%20b", false))),
            ("/api/v1/sets/old/changes", Some(("api/v1/sets/", "old", "/changes", true))),
            ("/api/v1/sets", Some(("", "api", "/v1/sets", false))),
            (
                "/timegate/http://a.example/data/old/r/x",
                Some(("timegate/http://a.example/data/", "old", "/r/x", false)),
            ),
            (
                "/timemap/json/http://a.example/data/old/r/x",
                Some(("timemap/json/http://a.example/data/", "old", "/r/x", false)),
            ),
            ("/timegate/http://b.example/old/r/x", None),
            ("/", None),
            ("old", None),
        ] {
            assert_eq!(found(path), expected, "{path}");
        }
    }
}
