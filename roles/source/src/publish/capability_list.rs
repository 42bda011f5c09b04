//! The Capability List of a set: which documents speak of it? [rs-core §9]

use super::{ArchiveKind, PublishedSet, Rendered, XML, link, source_description::described_by};
use abreast_resourcesync::v1_1::{Capability, Entry, Head, Root, write_end, write_entry, write_head};

/// The relation that tells what all URIs of a set begin with; a Destination strips it to make paths.
/// The term is VoID's, and ResourceSync allows any URI as a relation [rs-core §14].
pub(crate) const URI_SPACE: &str = "http://rdfs.org/ns/void#uriSpace";

/// `has_dumps`: is there a Resource Dump, and a Change Dump? `archives`: what is archived?
pub(super) fn render(up: &str, set: &PublishedSet, has_dumps: [bool; 2], archives: &[ArchiveKind]) -> Rendered {
    let mut bytes = Vec::new();
    let mut links = vec![link("up", up), described_by(&set.urls.page()), link(URI_SPACE, &set.urls.resources())];
    set.links.to_ln(&set.urls.resources(), None, &mut links);
    let head = Head { root: Root::UrlSet, capability: Some(Capability::CapabilityList), links, ..Head::default() };
    write_head(&mut bytes, &head);
    let capabilities = [
        (true, set.urls.resource_list(), Capability::ResourceList),
        (has_dumps[0], set.urls.resource_dump(), Capability::ResourceDump),
        (true, set.urls.change_list(), Capability::ChangeList),
        (has_dumps[1], set.urls.change_dump(), Capability::ChangeDump),
    ];
    let archives = archives.iter().map(|kind| (true, set.urls.archive(*kind), kind.capability()));
    for (_, loc, capability) in capabilities.into_iter().chain(archives).filter(|(there, ..)| *there) {
        write_entry(&mut bytes, Root::UrlSet, &Entry { loc, capability: Some(capability), ..Entry::default() });
    }
    write_end(&mut bytes, Root::UrlSet);
    Rendered { bytes, modified: None, content_type: XML }
}
