//! The Capability List of a set: which documents speak of it? [rs-core §9]

use super::{PublishedSet, Rendered, SourceUrls, XML, link};
use abreast_resourcesync::v1_1::{Capability, Entry, Head, Root, write_end, write_entry, write_head};

/// The relation that tells what all URIs of a set begin with; a Destination strips it to make paths.
/// The term is VoID's, and ResourceSync allows any URI as a relation [rs-core §14].
pub(super) const URI_SPACE: &str = "http://rdfs.org/ns/void#uriSpace";

pub(super) fn render(urls: &SourceUrls, set: &PublishedSet) -> Rendered {
    let mut bytes = Vec::new();
    let head = Head {
        root: Root::UrlSet,
        capability: Some(Capability::CapabilityList),
        links: vec![link("up", &urls.source_description()), link(URI_SPACE, &set.urls.resources())],
        ..Head::default()
    };
    write_head(&mut bytes, &head);
    for (loc, capability) in
        [(set.urls.resource_list(), Capability::ResourceList), (set.urls.change_list(), Capability::ChangeList)]
    {
        write_entry(&mut bytes, Root::UrlSet, &Entry { loc, capability: Some(capability), ..Entry::default() });
    }
    write_end(&mut bytes, Root::UrlSet);
    Rendered { bytes, modified: None, content_type: XML }
}
