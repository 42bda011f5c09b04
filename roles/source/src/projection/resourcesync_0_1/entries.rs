//! Resources and changes of a set as entries [rs-0.1 §3.1, §5.1].
//!
//! Size and digests describe the bytes as transferred, with the listed content coding. The resource
//! and the time identify a change, since the changes of a set have different times.

use super::PublishedSet;
use super::links::{add_links, add_types, add_versions};
use super::values::exactly;
use crate::Naming;
use abreast_core::{ChangeRecord, Kind, Resource, State};
use abreast_resourcesync::v0_1::{Change, Entry, Root, write_entry};
use abreast_webtypes::{Precision, W3cDatetime};

/// Writes entries of a set.
pub(super) struct EntryWriter<'a> {
    set: &'a PublishedSet,
    resources: String,
    naming: Naming,
    entry: Entry,
}

impl<'a> EntryWriter<'a> {
    pub(super) fn new(set: &'a PublishedSet) -> Self {
        let (resources, naming) = (set.urls.resources(), set.urls.naming());
        Self { set, resources, naming, entry: Entry::default() }
    }

    /// The last written entry, from which the index collects categories.
    pub(super) fn last(&self) -> &Entry {
        &self.entry
    }

    /// Writes a change, with the time of the change as `lastmod` or `expires`.
    pub(super) fn change(&mut self, out: &mut Vec<u8>, record: &ChangeRecord) {
        self.begin(&record.key, record.state.as_ref());
        let entry = &mut self.entry;
        entry.change = Some(match record.kind {
            Kind::Create | Kind::Add => Change::Created,
            Kind::Remove | Kind::Delete => Change::Deleted,
            _ => Change::Updated,
        });
        entry.time = Some(exactly(record.time));
        if let Some(state) = &record.state {
            add_links(entry, &self.resources, state, true);
            add_versions(entry, self.set, &record.key, state, Some((record.position, record.time)));
        }
        add_types(entry, record.description());
        write_entry(out, Root::UrlSet, entry);
    }

    /// Writes a resource, with the time of its last modification as `lastmod`.
    pub(super) fn resource(&mut self, out: &mut Vec<u8>, resource: &Resource) {
        let state = &resource.state;
        self.begin(&resource.key, Some(state));
        let entry = &mut self.entry;
        entry.change = None;
        entry.time = Some(W3cDatetime { instant: state.modified, precision: Precision::Second });
        add_links(entry, &self.resources, state, false);
        add_versions(entry, self.set, &resource.key, state, None);
        add_types(entry, state.description.as_deref());
        write_entry(out, Root::UrlSet, entry);
    }

    fn begin(&mut self, key: &str, state: Option<&State>) {
        let entry = &mut self.entry;
        self.naming.write_uri(key, &mut entry.loc);
        entry.links.clear();
        entry.metas.clear();
        if let Some(state) = state {
            entry.digests.clone_from(&state.digests);
            entry.size = state.length;
            entry.media_type.clone_from(&state.media_type);
            entry.encoding.clone_from(&state.encoding);
        } else {
            entry.digests.clear();
            (entry.size, entry.media_type, entry.encoding) = (None, None, None);
        }
    }
}
