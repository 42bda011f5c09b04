//! The Source Description: which sets are there? [rs-core §8]

use super::{PublishedSet, Rendered, XML};
use abreast_resourcesync::v1_1::{Capability, Entry, Head, Root, write_end, write_entry, write_head};

pub(super) fn render(sets: &[PublishedSet]) -> Rendered {
    let mut bytes = Vec::new();
    let head = Head { root: Root::UrlSet, capability: Some(Capability::Description), ..Head::default() };
    write_head(&mut bytes, &head);
    for set in sets {
        let entry =
            Entry { loc: set.urls.capability_list(), capability: Some(Capability::CapabilityList), ..Entry::default() };
        write_entry(&mut bytes, Root::UrlSet, &entry);
    }
    write_end(&mut bytes, Root::UrlSet);
    Rendered { bytes, modified: None, content_type: XML }
}
