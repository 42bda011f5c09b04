//! Capability List of a set, with links to the documents of the set [rs-core §9].

use super::source_description::described_by;
use super::values::{XML, link};
use super::{PublishedSet, Rendered};
use abreast_resourcesync::v1_1::{
    Capability, Entry, Head, Ln, Root, write_end, write_entry, write_head,
};

/// Relation for the common prefix of a set's URIs, which a Destination removes to get paths. The
/// term is from VoID; ResourceSync permits any URI as a relation [rs-core §14].
pub(crate) const URI_SPACE: &str = "http://rdfs.org/ns/void#uriSpace";

/// Relation for the URL of a package with all changes since a time; the client adds `time=` to the
/// query. See `docs/dumps.md`; the URI of the relation never changes.
pub(crate) const CHANGES_SINCE: &str = "urn:abreast:rel:changes-since";

/// Kinds of dumps that a set has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HasDumps {
    /// Whether the set has a Resource Dump.
    pub(crate) resources: bool,
    /// Whether the set has a Change Dump.
    pub(crate) changes: bool,
    /// Whether the set has packages of changes on request.
    pub(crate) since: bool,
}

/// Renders the Capability List of a set; `up` is the URL of the Source Description that lists it.
pub(super) fn render(up: &str, set: &PublishedSet) -> Rendered {
    let (mut bytes, has_dumps) = (Vec::new(), set.has_dumps());
    let mut links = vec![
        link("up", up),
        described_by(&set.urls.page()),
        link(URI_SPACE, &set.urls.resources()),
    ];
    if has_dumps.since {
        let media_type = Some("application/zip".to_owned());
        links.push(Ln { media_type, ..link(CHANGES_SINCE, &set.urls.changes_since()) });
    }
    set.links.to_ln(&set.urls.resources(), None, &mut links);
    let head = Head {
        root: Root::UrlSet,
        capability: Some(Capability::CapabilityList),
        links,
        ..Head::default()
    };
    write_head(&mut bytes, &head);
    let capabilities = [
        (true, set.urls.resource_list(), Capability::ResourceList),
        (has_dumps.resources, set.urls.resource_dump(), Capability::ResourceDump),
        (true, set.urls.change_list(), Capability::ChangeList),
        (has_dumps.changes, set.urls.change_dump(), Capability::ChangeDump),
    ];
    let archives = set
        .archive_kinds()
        .into_iter()
        .map(|kind| (true, set.urls.archive(kind), kind.capability()));
    for (_, loc, capability) in
        capabilities.into_iter().chain(archives).filter(|(there, ..)| *there)
    {
        write_entry(
            &mut bytes,
            Root::UrlSet,
            &Entry { loc, capability: Some(capability), ..Entry::default() },
        );
    }
    let notifications = set.notifications.iter();
    for (channel, hubs) in
        notifications.flat_map(|one| one.channels().map(|channel| (channel, &one.hubs)))
    {
        // Each channel has the links to its hubs [rs-change-notification §5]
        // [rs-framework-notification §5].
        let links = hubs.iter().map(|hub| link("hub", hub)).collect();
        let (loc, capability) = (set.urls.topic(channel), Some(channel.capability()));
        write_entry(
            &mut bytes,
            Root::UrlSet,
            &Entry { loc, capability, links, ..Entry::default() },
        );
    }
    write_end(&mut bytes, Root::UrlSet);
    Rendered { bytes, content_type: XML }
}
