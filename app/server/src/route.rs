//! Which route does a path mean?

use abreast_core::{Position, ShardId};
use abreast_source::publish::{ArchiveKind, Channel, DocumentPath};
use abreast_webtypes::Timestamp;

/// What a request path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Live,
    Ready,
    Metrics,
    Document(DocumentPath),
    /// A resource of a set: its encoded path.
    Resource(usize, String),
    /// A version of a resource of a set: its time and its encoded path.
    Memento(usize, String),
    /// From a date to a version of this URI.
    TimeGate(String),
    /// The versions of this URI.
    TimeMap(String),
    /// A package of a set, or the copy of its manifest: its name.
    Package(usize, String),
    /// What a set tells those who subscribed.
    Topic(usize, Channel),
    /// The same of a set that is not published: its name.
    RemovedTopic(String),
    /// A topic of the hub as a stream.
    HubEvents,
    /// What changed in a set since the point that the query names.
    ChangesSince(usize),
    NotFound,
}

/// Finds the route; `slugs` are the sets' names.
pub(crate) fn route<'a>(path: &str, mut slugs: impl Iterator<Item = &'a str>) -> Route {
    let Some(path) = path.strip_prefix('/') else { return Route::NotFound };
    match path {
        "" | "about.html" => return Route::Document(DocumentPath::SourcePage),
        "livez" => return Route::Live,
        "readyz" => return Route::Ready,
        "metrics" => return Route::Metrics,
        "hub/events" => return Route::HubEvents,
        "robots.txt" => return Route::Document(DocumentPath::Robots),
        "sitemap.xml" => return Route::Document(DocumentPath::SitemapIndex),
        ".well-known/resourcesync" => return Route::Document(DocumentPath::SourceDescription),
        _ => {}
    }
    if let Some(part) = path.strip_prefix("sourcedescription/") {
        let number = part.strip_suffix(".xml").and_then(number);
        return number.map_or(Route::NotFound, |number| Route::Document(DocumentPath::SourceDescriptionPart(number)));
    }
    if let Some(uri) = path.strip_prefix("timegate/") {
        return Route::TimeGate(uri.to_owned());
    }
    if let Some(uri) = path.strip_prefix("timemap/") {
        return Route::TimeMap(uri.to_owned());
    }
    let Some((slug, rest)) = path.split_once('/') else { return Route::NotFound };
    let Some(set) = slugs.position(|name| name == slug) else {
        return if rest == "notify/framework" { Route::RemovedTopic(slug.to_owned()) } else { Route::NotFound };
    };
    if let Some(resource) = rest.strip_prefix("r/") {
        return Route::Resource(set, resource.to_owned());
    }
    if let Some(version) = rest.strip_prefix("m/") {
        return Route::Memento(set, version.to_owned());
    }
    if let Some(name) = rest.strip_prefix("dump/") {
        return Route::Package(set, name.to_owned());
    }
    let numbered = |prefix: &str| rest.strip_prefix(prefix)?.strip_suffix(".xml").and_then(number);
    let document = match rest {
        "about.html" => DocumentPath::SetPage(set),
        "capabilitylist.xml" => DocumentPath::CapabilityList(set),
        "resourcelist.xml" => DocumentPath::ResourceList(set),
        "changelist.xml" => DocumentPath::ChangeList(set),
        "resourcelist-archive.xml" => DocumentPath::Archive(set, ArchiveKind::ResourceLists),
        "changelist-archive.xml" => DocumentPath::Archive(set, ArchiveKind::ChangeLists),
        "resourcedump-archive.xml" => DocumentPath::Archive(set, ArchiveKind::ResourceDumps),
        "changedump-archive.xml" => DocumentPath::Archive(set, ArchiveKind::ChangeDumps),
        "resourcedump.xml" => DocumentPath::ResourceDump(set),
        "changedump.xml" => DocumentPath::ChangeDump(set),
        "changedump/since" => return Route::ChangesSince(set),
        "notify/change" => return Route::Topic(set, Channel::Change),
        "notify/framework" => return Route::Topic(set, Channel::Framework),
        _ => {
            if let Some(id) = numbered("resourcelist/") {
                DocumentPath::ResourceListShard(set, ShardId(id))
            } else if let Some(page) = numbered("changelist/") {
                DocumentPath::ChangeListPage(set, page)
            } else if let Some(number) = numbered("resourcedump/") {
                DocumentPath::ResourceDumpPart(set, number)
            } else if let Some(number) = numbered("changedump/") {
                DocumentPath::ChangeDumpPart(set, number)
            } else if let Some(part) = numbered("resourcelist-archive/") {
                DocumentPath::ArchivePart(set, ArchiveKind::ResourceLists, part)
            } else if let Some(part) = numbered("changelist-archive/") {
                DocumentPath::ArchivePart(set, ArchiveKind::ChangeLists, part)
            } else if let Some(part) = numbered("resourcedump-archive/") {
                DocumentPath::ArchivePart(set, ArchiveKind::ResourceDumps, part)
            } else if let Some(part) = numbered("changedump-archive/") {
                DocumentPath::ArchivePart(set, ArchiveKind::ChangeDumps, part)
            } else if let Some(begin) = numbered("archived/resourcedump/").and_then(time) {
                DocumentPath::ArchivedDump(set, ArchiveKind::ResourceDumps, begin)
            } else if let Some(begin) = numbered("archived/changedump/").and_then(time) {
                DocumentPath::ArchivedDump(set, ArchiveKind::ChangeDumps, begin)
            } else if let Some(list) = numbered("archived/resourcelist/") {
                DocumentPath::ArchivedResourceList(set, list)
            } else if let Some([shard, version, list]) = three_numbers(rest, "archived/resourcelist/") {
                DocumentPath::ArchivedResourceListPart(set, ShardId(shard), Position(version), list)
            } else if let Some(id) = numbered("sitemap/") {
                DocumentPath::SitemapShard(set, ShardId(id))
            } else {
                return Route::NotFound;
            }
        }
    };
    Route::Document(document)
}

/// Microseconds since 1970.
fn time(micros: u64) -> Option<Timestamp> {
    micros.try_into().ok().map(Timestamp::from_micros)
}

/// `{prefix}{number}-{number}-{number}.xml`
fn three_numbers(path: &str, prefix: &str) -> Option<[u64; 3]> {
    let mut parts = path.strip_prefix(prefix)?.strip_suffix(".xml")?.split('-').map(number);
    let three = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(three)
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
        assert_eq!(of("/sourcedescription/2.xml"), Route::Document(DocumentPath::SourceDescriptionPart(2)));
        assert_eq!(of("/"), of("/about.html"));
        let archive = DocumentPath::Archive(0, ArchiveKind::ResourceLists);
        assert_eq!(of("/a/resourcelist-archive.xml"), Route::Document(archive));
        let part = DocumentPath::ArchivePart(1, ArchiveKind::ChangeLists, 3);
        assert_eq!(of("/b/changelist-archive/3.xml"), Route::Document(part));
        let list = DocumentPath::ArchivedResourceList(0, 7);
        assert_eq!(of("/a/archived/resourcelist/7.xml"), Route::Document(list));
        let part = DocumentPath::ArchivedResourceListPart(0, ShardId(1), Position(2), 3);
        assert_eq!(of("/a/archived/resourcelist/1-2-3.xml"), Route::Document(part));
        assert_eq!(of("/a/archived/resourcelist/1-2.xml"), Route::NotFound);
        let dump = DocumentPath::ArchivedDump(0, ArchiveKind::ChangeDumps, Timestamp::from_micros(5));
        assert_eq!(of("/a/archived/changedump/5.xml"), Route::Document(dump));
        assert_eq!(of("/a/archived/changedump/18446744073709551615.xml"), Route::NotFound);
        assert_eq!(of("/about.html"), Route::Document(DocumentPath::SourcePage));
        assert_eq!(of("/b/about.html"), Route::Document(DocumentPath::SetPage(1)));
        assert_eq!(of("/a/changedump.xml"), Route::Document(DocumentPath::ChangeDump(0)));
        assert_eq!(of("/a/resourcedump/2.xml"), Route::Document(DocumentPath::ResourceDumpPart(0, 2)));
        assert_eq!(of("/a/changedump/since"), Route::ChangesSince(0));
        assert_eq!(of("/b/notify/framework"), Route::Topic(1, Channel::Framework));
        assert_eq!(of("/gone/notify/framework"), Route::RemovedTopic("gone".to_owned()));
        assert_eq!(of("/hub/events"), Route::HubEvents);
        assert_eq!(of("/b/dump/resources-x-1.zip"), Route::Package(1, "resources-x-1.zip".into()));
        assert_eq!(of("/b/m/20260101000000000000/x"), Route::Memento(1, "20260101000000000000/x".into()));
        assert_eq!(of("/timegate/http://x/a/r/y"), Route::TimeGate("http://x/a/r/y".into()));
        assert_eq!(of("/timemap/json/http://x/y"), Route::TimeMap("json/http://x/y".into()));
        assert_eq!(of("/a/r/x/y%20z"), Route::Resource(0, "x/y%20z".into()));
        for path in
            ["", "a", "//", "/c/r/x", "/a", "/a/", "/a/changelist/03.xml", "/a/changelist/+3.xml", "/a/changelist/.xml"]
        {
            assert_eq!(of(path), Route::NotFound, "{path}");
        }
    }
}
