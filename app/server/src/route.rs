//! Which route does a path mean?

use abreast_core::ShardId;
use abreast_source::publish::DocumentPath;

/// What a request path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Home,
    Live,
    Ready,
    Metrics,
    Document(DocumentPath),
    /// A resource of a set: its encoded path.
    Resource(usize, String),
    NotFound,
}

/// Finds the route; `slugs` are the sets' names.
pub(crate) fn route<'a>(path: &str, mut slugs: impl Iterator<Item = &'a str>) -> Route {
    let Some(path) = path.strip_prefix('/') else { return Route::NotFound };
    match path {
        "" => return Route::Home,
        "livez" => return Route::Live,
        "readyz" => return Route::Ready,
        "metrics" => return Route::Metrics,
        "robots.txt" => return Route::Document(DocumentPath::Robots),
        "sitemap.xml" => return Route::Document(DocumentPath::SitemapIndex),
        ".well-known/resourcesync" => return Route::Document(DocumentPath::SourceDescription),
        _ => {}
    }
    let Some((slug, rest)) = path.split_once('/') else { return Route::NotFound };
    let Some(set) = slugs.position(|name| name == slug) else { return Route::NotFound };
    if let Some(resource) = rest.strip_prefix("r/") {
        return Route::Resource(set, resource.to_owned());
    }
    let numbered = |prefix: &str| rest.strip_prefix(prefix)?.strip_suffix(".xml").and_then(number);
    let document = match rest {
        "capabilitylist.xml" => DocumentPath::CapabilityList(set),
        "resourcelist.xml" => DocumentPath::ResourceList(set),
        "changelist.xml" => DocumentPath::ChangeList(set),
        _ => {
            if let Some(id) = numbered("resourcelist/") {
                DocumentPath::ResourceListShard(set, ShardId(id))
            } else if let Some(page) = numbered("changelist/") {
                DocumentPath::ChangeListPage(set, page)
            } else if let Some(id) = numbered("sitemap/") {
                DocumentPath::SitemapShard(set, ShardId(id))
            } else {
                return Route::NotFound;
            }
        }
    };
    Route::Document(document)
}

/// A number in its one spelling: no sign, no leading zero.
fn number(text: &str) -> Option<u64> {
    let canonical =
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Route {
        route(path, ["a", "b"].into_iter())
    }

    #[test]
    fn every_document_has_one_path() {
        assert_eq!(of("/.well-known/resourcesync"), Route::Document(DocumentPath::SourceDescription));
        assert_eq!(of("/b/resourcelist/12.xml"), Route::Document(DocumentPath::ResourceListShard(1, ShardId(12))));
        assert_eq!(of("/a/changelist/3.xml"), Route::Document(DocumentPath::ChangeListPage(0, 3)));
        assert_eq!(of("/a/r/x/y%20z"), Route::Resource(0, "x/y%20z".into()));
        for path in
            ["", "a", "//", "/c/r/x", "/a", "/a/", "/a/changelist/03.xml", "/a/changelist/+3.xml", "/a/changelist/.xml"]
        {
            assert_eq!(of(path), Route::NotFound, "{path}");
        }
    }
}
