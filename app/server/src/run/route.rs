//! The paths of the server itself; all other paths belong to projections.

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
