//! The fragments feed: the latest change of each resource, in pages [sdshare §Fragments Feed].
//!
//! The cost of a page depends on its entries, and not on the size of the set or its log. The pages
//! first list the resources without changes since the log began, in the order of keys and with the
//! time of the log's beginning, and then the changes in the order of the log. The first part is
//! left out if the request has a later `since`. Sets of entities do not have the first part,
//! because their history starts in the log. A resource that changes while a client reads pages
//! moves to the end. The client finds the resource there, so nothing is missed, and entries on
//! later pages never have earlier times than entries on pages before them.

use super::head::{ATOM, author, title};
use super::link::{add_links, resource_iri};
use super::paths::{Cursor, FragmentsQuery, SetFeed};
use crate::Naming;
use crate::projection::routes::Route as _;
use crate::publish::publisher::Publisher;
use crate::publish::{
    HeadReader, LogState, Output, PublishError, PublishedSet, Rendered, ResolvedDocument, Version,
};
use abreast_core::{ChangeRecord, Description, Head, KeyRange, Position, State};
use abreast_sdshare::{Entry, Feed, Link, Relation, write_end, write_entry, write_feed};
use abreast_webtypes::{Timestamp, encode_segment};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Most entries of a page of fragments.
pub const ENTRIES_PER_PAGE: usize = 1_000;
/// Resources that are read for a page of those which have not changed: a page ends there, and may
/// have fewer entries then.
const MAX_SCANNED: usize = 10_000;
/// Bytes of an entry, about; that of an entity has more links.
const ENTRY_BYTES: u64 = 700;
const ENTITY_ENTRY_BYTES: u64 = 2_000;

/// A page of a fragments feed, found for a path and a query.
pub(super) struct FragmentsPage<'p> {
    pub(super) publisher: &'p Publisher,
    pub(super) set: &'p Arc<PublishedSet>,
    pub(super) query: FragmentsQuery,
    pub(super) most: usize,
}

impl ResolvedDocument for FragmentsPage<'_> {
    fn version(&self, heads: HeadReader<'_>) -> Result<Version, PublishError> {
        let LogState { created, position } =
            LogState::of(heads, self.set).ok_or(PublishError::Importing)?;
        Ok(Version::changing([created.as_micros() as u64, position.0]))
    }

    fn is_newest(&self) -> bool {
        true
    }

    fn introduces(&self) -> Vec<Arc<PublishedSet>> {
        vec![Arc::clone(self.set)]
    }

    fn render(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        let (log, set) = (&**self.publisher.log(), self.set);
        let head = log.head(set.id)?;
        if head.importing {
            return Err(PublishError::Importing);
        }
        // A recreated log may have changes of the log before it.
        let begin = log.position_at(set.id, head.created)?;
        // The time is inclusive: resources that changed at that time are listed again.
        let asked = match self.query.since {
            Some(since) => log.position_at(set.id, since.plus_micros(-1))?.max(begin),
            None => begin,
        };
        let entities = set.urls.naming().names_entities();
        let lists_unchanged =
            !entities && self.query.since.is_none_or(|since| since <= head.created);
        let all = if lists_unchanged { head.resources } else { 0 };
        let expected = all + head.position.0.saturating_sub(asked.0);
        let of_each = if entities { ENTITY_ENTRY_BYTES } else { ENTRY_BYTES };
        output.expect(expected.min(self.most as u64) * of_each);

        let mut writer = EntryWriter::new(set, &head);
        let mut next = None;
        let after = match &self.query.cursor {
            Cursor::Changed(position) => Some((*position).max(asked)),
            _ if !lists_unchanged => Some(asked),
            Cursor::Start => {
                next = self.write_unchanged(&mut writer, &head, begin, "")?;
                next.is_none().then_some(asked)
            }
            Cursor::Unchanged(key) => {
                next = self.write_unchanged(&mut writer, &head, begin, key)?;
                next.is_none().then_some(asked)
            }
        };
        if let Some(after) = after {
            next = self.write_changed(&mut writer, after)?;
        }
        let page = |cursor| FragmentsQuery { since: self.query.since, cursor }.url(set);
        let first = self.query.cursor == Cursor::Start;
        let mut links = vec![Link::to_feed(Relation::SelfLink, self.query.url(set))];
        if !first || next.is_some() {
            links.push(Link::to_feed(Relation::First, page(Cursor::Start)));
        }
        links.extend(next.map(|cursor| Link::to_feed(Relation::Next, page(cursor))));
        if first && self.query.since.is_none() {
            links.extend(hubs(set));
        }
        Ok(finish(set, writer.newest.max(head.time), links, writer.bytes))
    }
}

impl FragmentsPage<'_> {
    /// Writes resources without changes since the log began. Returns where the next page starts,
    /// unless it starts with the changes.
    fn write_unchanged(
        &self,
        writer: &mut EntryWriter<'_>,
        head: &Head,
        begin: Position,
        behind: &str,
    ) -> Result<Option<Cursor>, PublishError> {
        let range = KeyRange { start: behind.to_owned(), end: None };
        let (mut scanned, mut next) = (0, None);
        let mut last = String::new();
        self.publisher.log().scan(self.set.id, &range, &mut |resource| {
            if resource.key == behind {
                return ControlFlow::Continue(());
            }
            if writer.entries == self.most || scanned == MAX_SCANNED {
                next = Some(Cursor::Unchanged(std::mem::take(&mut last)));
                return ControlFlow::Break(());
            }
            scanned += 1;
            last.clone_from(&resource.key);
            if resource.position <= begin {
                let mut id = String::from("0-");
                encode_segment(resource.key.as_bytes(), &mut id);
                writer.write(&resource.key, Some(&resource.state), None, head.created, &id);
            }
            ControlFlow::Continue(())
        })?;
        Ok(next)
    }

    /// Writes changes after a position. Returns where the next page starts, if there is one.
    fn write_changed(
        &self,
        writer: &mut EntryWriter<'_>,
        after: Position,
    ) -> Result<Option<Cursor>, PublishError> {
        let (mut last, mut next) = (after, None);
        self.publisher.log().latest(self.set.id, after, &mut |record| {
            if writer.entries >= self.most {
                next = Some(Cursor::Changed(last));
                return ControlFlow::Break(());
            }
            last = record.position;
            writer.write_record(record);
            ControlFlow::Continue(())
        })?;
        Ok(next)
    }
}

/// Notification of a range of the log: a fragments feed with the latest change of each resource in
/// the range. The same range always has the same bytes.
pub(super) fn notification(
    publisher: &Publisher,
    set: &PublishedSet,
    after: Position,
    last: Position,
) -> Result<Vec<u8>, PublishError> {
    let (log, head) = (publisher.log(), publisher.log().head(set.id)?);
    let mut latest: HashMap<String, Position> = HashMap::new();
    let mut updated = head.created;
    let visit = |each: &mut dyn FnMut(&ChangeRecord)| {
        log.read(set.id, after, &mut |record: &ChangeRecord| {
            if record.position > last {
                return ControlFlow::Break(());
            }
            each(record);
            ControlFlow::Continue(())
        })
    };
    if after < last {
        visit(&mut |record| {
            updated = record.time;
            latest.insert(record.key.clone(), record.position);
        })?;
    }
    let mut writer = EntryWriter::new(set, &head);
    if after < last {
        visit(&mut |record| {
            if latest.get(&record.key) == Some(&record.position) {
                writer.write_record(record);
            }
        })?;
    }
    let links = vec![Link::to_feed(Relation::SelfLink, SetFeed::Fragments.url(&set.urls))];
    let links = links.into_iter().chain(hubs(set)).collect();
    Ok(finish(set, updated, links, writer.bytes).bytes)
}

/// Links to the hubs for subscriptions to the feed, if changes are notified.
fn hubs(set: &PublishedSet) -> impl Iterator<Item = Link> {
    let notifications = set.notifications.as_ref().filter(|notifications| notifications.changes);
    let hubs = notifications.into_iter().flat_map(|notifications| &notifications.hubs);
    hubs.map(|hub| Link::new(Relation::Hub, hub.clone()))
}

fn finish(
    set: &PublishedSet,
    updated: Timestamp,
    mut links: Vec<Link>,
    mut entries: Vec<u8>,
) -> Rendered {
    links.push(Link::to_feed(Relation::Other("up".to_owned()), SetFeed::Collection.url(&set.urls)));
    let feed = Feed {
        id: SetFeed::Fragments.url(&set.urls),
        title: format!("Changes of {}", title(set)),
        subtitle: None,
        updated: Some(updated),
        author: Some(author(set)),
        links,
        has_files: !set.urls.naming().names_entities(),
    };
    let mut bytes = Vec::with_capacity(entries.len() + 2_048);
    write_feed(&mut bytes, &feed);
    bytes.append(&mut entries);
    write_end(&mut bytes);
    Rendered { bytes, content_type: ATOM }
}

/// Writer of the entries of a set.
struct EntryWriter<'s> {
    set: &'s PublishedSet,
    naming: Naming,
    /// Common prefix of the ids of entries.
    id: String,
    entry: Entry,
    entries: usize,
    newest: Timestamp,
    bytes: Vec<u8>,
}

impl<'s> EntryWriter<'s> {
    fn new(set: &'s PublishedSet, head: &Head) -> Self {
        // A recreated log uses the same positions again, so ids contain the time of its beginning.
        let id = format!("{}#{}-", SetFeed::Fragments.url(&set.urls), head.created.as_micros());
        let naming = set.urls.naming();
        let (entry, newest) = (Entry::default(), head.created);
        Self { set, naming, id, entry, entries: 0, newest, bytes: Vec::new() }
    }

    fn write_record(&mut self, record: &ChangeRecord) {
        let (description, state) = (record.description(), record.state.as_ref());
        self.write(&record.key, state, description, record.time, &record.position.to_string());
    }

    fn write(
        &mut self,
        key: &str,
        state: Option<&State>,
        description: Option<&Description>,
        time: Timestamp,
        id: &str,
    ) {
        let entry = &mut self.entry;
        entry.clear();
        let iri = resource_iri(&self.naming, key);
        let description = description.or_else(|| state?.description.as_deref());
        let label = self.set.about.label(description, &[]);
        entry.title.push_str(label.map_or(&iri, |label| &label.text));
        entry.id.push_str(&self.id);
        entry.id.push_str(id);
        entry.updated = Some(time);
        self.newest = self.newest.max(time);
        entry.is_deleted = state.is_none();
        add_links(self.set, &self.naming, key, state, &mut entry.links);
        entry.resources.push(iri);
        write_entry(&mut self.bytes, entry);
        self.entries += 1;
    }
}
