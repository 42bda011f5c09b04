//! A change of the log as an activity [emm-1.0 §4, iiif-discovery §2.1].

use super::paths::{Feed, View};
use crate::versions::VersionUrls;
use crate::{Naming, media_type_of};
use abreast_core::{ChangeRecord, Kind};
use abreast_emm::{Activity, ActivityType, Instrument, LinkTo, Object, PageWriter, Profile};

/// Type of an entity without a type in its description.
const RESOURCE: &str = "http://www.w3.org/2000/01/rdf-schema#Resource";

/// Writer of activities for the changes of a feed.
pub(super) struct Activities<'f> {
    feed: &'f Feed<'f>,
    naming: Naming,
    /// URL of the Entry Point.
    url: String,
    /// Feed whose URLs are the ids of activities. A feed of a type also has activities of its own.
    history: Feed<'f>,
    id: String,
    instrument: String,
    summary: String,
    object: String,
    address: String,
    links: Vec<LinkTo>,
}

impl<'f> Activities<'f> {
    pub(super) fn new(feed: &'f Feed<'f>) -> Self {
        Self {
            feed,
            naming: feed.set.urls.naming(),
            url: feed.url(),
            history: feed.history(),
            id: String::new(),
            instrument: String::new(),
            summary: String::new(),
            object: String::new(),
            address: String::new(),
            links: Vec::new(),
        }
    }

    /// Adds a change to a page, with its Entity Patch inline if there is one.
    pub(super) fn write(
        &mut self,
        page: &mut PageWriter,
        record: &ChangeRecord,
        patch: Option<&str>,
    ) {
        self.with(record, None, patch, |activity| page.write(activity));
    }

    /// Calls `take` with the activity of a change. `page` is the URL of the change's page, if the
    /// activity is a separate document.
    pub(super) fn with<T>(
        &mut self,
        record: &ChangeRecord,
        page: Option<&str>,
        patch: Option<&str>,
        take: impl FnOnce(&Activity<'_>) -> T,
    ) -> T {
        let profile = self.feed.profile;
        let kind = self.feed.view.kind_of(record).unwrap_or(record.kind);
        let is_own = kind != record.kind;
        let leaves_type = is_own && kind == Kind::Remove;
        let kind = match kind {
            Kind::Create => ActivityType::Create,
            Kind::Add => ActivityType::Add,
            Kind::Deprecate => ActivityType::Deprecate,
            Kind::Remove => ActivityType::Remove,
            Kind::Delete => ActivityType::Delete,
            _ => ActivityType::Update,
        };
        self.id.clear();
        let at = if is_own { self.feed } else { &self.history };
        at.write_activity(record.position, &mut self.id);
        let is_entity = self.naming.names_entities();
        if is_entity {
            self.object.clone_from(&record.key);
            self.instrument.clone_from(&self.id);
            self.instrument.push_str("/instrument/1");
            self.address_links(record, leaves_type);
        } else {
            self.naming.write_uri(&record.key, &mut self.object);
        }
        let description = record.description();
        let label = self.feed.set.about.label(description, &[]);
        self.summary.clear();
        if let Some(summary) = &record.summary {
            self.summary.push_str(summary);
        } else {
            self.summary.push_str(kind.name(profile));
            self.summary.push(' ');
            self.summary.push_str(label.map_or(&self.object, |label| &label.text));
        }
        let state = record.state.as_ref();
        // A removed entity has the types that it had in the feed.
        let types = match &record.former_types {
            Some(former) if leaves_type => Some(former.as_slice()),
            _ => description.map(|description| description.types.as_slice()),
        };
        let types: Vec<&str> = match types {
            Some(types @ [_, ..]) => types.iter().map(String::as_str).collect(),
            _ if is_entity => vec![RESOURCE],
            _ => {
                let there = state.and_then(|state| state.media_type.as_deref());
                let was = || description.and_then(|removed| removed.media_type.as_deref());
                // Stores of older versions do not have the media type.
                let by_name = || media_type_of(record.key.rsplit('/').next()?.as_bytes()).into();
                vec![self.type_of_file(there.or_else(was).or_else(by_name))]
            }
        };
        // Patches belong to version 0.1 [emm-0.1 §4.2]. The other versions have patches only on
        // request. The patches are the patches of the activities in the feed of all changes.
        let has_version = |urls: &VersionUrls| urls.has_change(record.position);
        let has_version = || self.feed.set.versions.as_ref().is_some_and(has_version);
        // A closed page has permanent URLs of patches; a deleted patch is answered by 410. Pages
        // with inline patches only have patches that are still stored.
        let is_named = profile == Profile::Emm01 && self.feed.view != View::Patches;
        let has_instrument = is_entity && !is_own && (patch.is_some() || is_named && has_version());
        let instrument =
            has_instrument.then(|| Instrument { id: &self.instrument, content: patch });
        take(&Activity {
            id: &self.id,
            kind,
            summary: Some(&self.summary),
            time: record.time,
            object: Object {
                id: &self.object,
                types: &types,
                updated: Some(state.map_or(record.time, |state| state.modified)),
                media_type: state
                    .filter(|_| !is_entity)
                    .and_then(|state| state.media_type.as_deref()),
                links: &self.links,
            },
            collection: Some(&self.url),
            instrument,
            part_of: page,
        })
    }

    /// Adds links to the URL of the description here, which differs from the IRI of the entity.
    fn address_links(&mut self, record: &ChangeRecord, leaves_type: bool) {
        if record.state.is_none() || leaves_type {
            self.links.clear();
            return;
        }
        self.naming.write_uri(&record.key, &mut self.address);
        let syntaxes = self.feed.syntaxes();
        self.links.resize_with(syntaxes.len(), LinkTo::default);
        for (link, (end, syntax)) in self.links.iter_mut().zip(syntaxes) {
            link.href.clone_from(&self.address);
            link.href.push_str(end);
            link.media_type = syntax.media_type();
        }
    }

    /// Type of a file in Activity Streams, by its media type.
    fn type_of_file(&self, media_type: Option<&str>) -> &'f str {
        if let Some(kind) = &self.feed.set.feeds().object_type {
            return kind;
        }
        match media_type.and_then(|media_type| media_type.split('/').next()) {
            Some("image") => "Image",
            Some("audio") => "Audio",
            Some("video") => "Video",
            _ => "Document",
        }
    }
}
