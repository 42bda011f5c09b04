//! The paths of the server itself; all other paths belong to projections.

use abreast_core::NodeRole;

/// The part of the server that answers a path; `S` is the type that identifies a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route<S> {
    Live,
    Ready,
    Metrics,
    /// A document, a file or a topic, if a projection has it at this path.
    Published(String),
    /// A resource of a set, with its encoded path.
    Resource(S, String),
    /// A version of a resource of a set, with its time and its encoded path.
    Memento(S, String),
    /// The TimeGate of this URI: selects a version by date.
    TimeGate(String),
    /// The list of versions of this URI.
    TimeMap(String),
    /// A topic of the hub, as a stream of events.
    HubEvents,
    NotFound,
}

/// The role whose nodes answer a path, by the start of the path only, so that a load balancer can make the same
/// choice; `None` if every node answers.
pub(crate) fn role_of(path: &str) -> Option<NodeRole> {
    match path {
        "/livez" | "/readyz" | "/metrics" | "/style.css" | "/icon.svg" => return None,
        _ => {}
    }
    Some(match path.split('/').nth(1) {
        Some("api" | "admin") => NodeRole::Api,
        Some("hub") => NodeRole::Hub,
        _ => NodeRole::Publish,
    })
}

/// Finds the route of a path; `find` finds a set by name.
pub(crate) fn route<S>(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Route<S> {
    let Some(path) = path.strip_prefix('/') else { return Route::NotFound };
    match path {
        "" => return Route::Published("about.html".to_owned()),
        "livez" => return Route::Live,
        "readyz" => return Route::Ready,
        "metrics" => return Route::Metrics,
        "hub/events" => return Route::HubEvents,
        _ => {}
    }
    if let Some(uri) = path.strip_prefix("timegate/") {
        return Route::TimeGate(uri.to_owned());
    }
    if let Some(uri) = path.strip_prefix("timemap/") {
        return Route::TimeMap(uri.to_owned());
    }
    of_set(path, find).unwrap_or_else(|| Route::Published(path.to_owned()))
}

/// The resource or version of a set at a path.
fn of_set<S>(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<Route<S>> {
    let (slug, rest) = path.split_once('/')?;
    if let Some(resource) = rest.strip_prefix("r/") {
        return find(slug).map(|set| Route::Resource(set, resource.to_owned()));
    }
    let version = rest.strip_prefix("m/")?;
    find(slug).map(|set| Route::Memento(set, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Route<usize> {
        route(path, |slug| ["a", "b"].iter().position(|name| *name == slug))
    }

    #[test]
    fn each_path_belongs_to_one_role_or_to_all() {
        for (role, paths) in [
            (None, &["/livez", "/readyz", "/metrics", "/style.css", "/icon.svg"][..]),
            (Some(NodeRole::Api), &["/api", "/api/v1/sets", "/admin", "/admin/sets/a"]),
            (Some(NodeRole::Hub), &["/hub", "/hub/events"]),
            (
                Some(NodeRole::Publish),
                &[
                    "/",
                    "",
                    "/.well-known/resourcesync",
                    "/a/r/x",
                    "/a/r/api",
                    "/apis/changelist.xml",
                    "/a/m/2/x",
                    "/timegate/http://x/y",
                    "/a/notify/change",
                    "/a/v0.1/subscribe",
                ],
            ),
        ] {
            for path in paths {
                assert_eq!(role_of(path), role, "{path}");
            }
        }
    }

    #[test]
    fn the_paths_of_the_server_itself_are_known() {
        let published = |path: &str| Route::Published(path.to_owned());
        assert_eq!(of("/"), published("about.html"));
        assert_eq!(of("/livez"), Route::Live);
        assert_eq!(of("/hub/events"), Route::HubEvents);
        assert_eq!(
            of("/b/m/20260101000000000000/x"),
            Route::Memento(1, "20260101000000000000/x".into())
        );
        assert_eq!(of("/timegate/http://x/a/r/y"), Route::TimeGate("http://x/a/r/y".into()));
        assert_eq!(of("/timemap/json/http://x/y"), Route::TimeMap("json/http://x/y".into()));
        assert_eq!(of("/a/r/x/y%20z"), Route::Resource(0, "x/y%20z".into()));
        for path in [
            "a/changedump/since",
            "b/dump/resources-x-1.zip",
            "robots.txt",
            "/",
            "c/r/x",
            "a",
            "a/",
            "b/notify/change",
            "gone/notify/framework",
        ] {
            assert_eq!(of(&format!("/{path}")), published(path), "projections are asked for it");
        }
        for path in ["", "a"] {
            assert_eq!(of(path), Route::NotFound, "{path}");
        }
    }
}
