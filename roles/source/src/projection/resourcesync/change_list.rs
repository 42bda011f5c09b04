//! Change Lists: changes of resources, oldest first, and the index of the lists [rs-core §12].
//!
//! A list is one page of the log. Closed lists have `until` and never change; the last list is
//! open. `from` of a list equals `until` of the previous list, so the lists cover all times.

use super::links::{LinkDocument, state_links};
use super::values::{XML, exactly, link};
use super::version_links::version_links;
use super::{Output, PublishError, PublishedSet, Rendered};
use crate::Naming;
use abreast_core::{ChangeLog, ChangeRecord, Kind, Page};
use abreast_resourcesync::v1_1::{
    Capability, Change, Entry, Head, Ln, Root, write_end, write_entry, write_head,
};
use std::ops::ControlFlow;

/// Entries in an index [rs-core §7]; older pages drop out of it, and keep answering at their URLs.
const MAX_PAGES: u64 = 50_000;

/// Renders the open Change List if it is the only list, otherwise the index; with a link to the
/// archive, if there is one.
pub(super) fn entry_point(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    archive: Option<Ln>,
    output: &mut dyn Output,
) -> Result<Rendered, PublishError> {
    let head = log.head(set.id)?;
    if head.open_page == 1 {
        return open_or_closed(log, set, 1, archive, output);
    }
    let mut links = vec![link("up", &set.urls.capability_list())];
    links.extend(archive);
    let first = head.open_page.saturating_sub(MAX_PAGES - 1).max(1);
    output.expect((head.open_page - first + 1) * 220);
    let pages = log.pages(set.id, first, MAX_PAGES as usize)?;
    let from = pages.first().map(|page| exactly(page.from));
    let mut bytes = Vec::with_capacity(512 + pages.len() * 220);
    write_head(
        &mut bytes,
        &Head {
            root: Root::SitemapIndex,
            capability: Some(Capability::ChangeList),
            from,
            links,
            ..Head::default()
        },
    );
    for page in pages {
        let entry = Entry {
            loc: set.urls.change_list_page(page.number),
            lastmod: page.until.map(exactly),
            from: Some(exactly(page.from)),
            until: page.until.map(exactly),
            ..Entry::default()
        };
        write_entry(&mut bytes, Root::SitemapIndex, &entry);
    }
    write_end(&mut bytes, Root::SitemapIndex);
    Ok(Rendered { bytes, content_type: XML })
}

/// Renders one page, closed or open.
pub(super) fn page(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    number: u64,
    output: &mut dyn Output,
) -> Result<Rendered, PublishError> {
    // A closed page never changes, so it has no links to documents that may be deleted.
    open_or_closed(log, set, number, None, output)
}

fn open_or_closed(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    number: u64,
    archive: Option<Ln>,
    output: &mut dyn Output,
) -> Result<Rendered, PublishError> {
    let page = log
        .pages(set.id, number, 1)?
        .into_iter()
        .next()
        .filter(|page| page.number == number)
        .ok_or(PublishError::NotFound)?;
    let last = match page.last {
        Some(last) => last,
        None => log.head(set.id)?.position,
    };
    output.expect(last.0.saturating_sub(page.after.0) * 300);
    render(log, set, &page, archive)
}

fn render(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    page: &Page,
    archive: Option<Ln>,
) -> Result<Rendered, PublishError> {
    let mut links = vec![link("up", &set.urls.capability_list())];
    links.extend(archive);
    if page.number > 1 || page.until.is_some() {
        links.push(link("index", &set.urls.change_list()));
    }
    let mut bytes = Vec::with_capacity(64 * 1_024);
    write_head(
        &mut bytes,
        &Head {
            root: Root::UrlSet,
            capability: Some(Capability::ChangeList),
            from: Some(exactly(page.from)),
            until: page.until.map(exactly),
            links,
            ..Head::default()
        },
    );
    let mut writer = ChangeWriter::new(set);
    log.read(set.id, page.after, &mut |record| {
        if page.last.is_some_and(|last| record.position > last) {
            return ControlFlow::Break(());
        }
        writer.write(&mut bytes, record);
        ControlFlow::Continue(())
    })?;
    write_end(&mut bytes, Root::UrlSet);
    Ok(Rendered { bytes, content_type: XML })
}

/// Writer of changes as entries of lists and notifications.
pub(super) struct ChangeWriter<'a> {
    set: &'a PublishedSet,
    resources: String,
    naming: Naming,
    entry: Entry,
}

impl<'a> ChangeWriter<'a> {
    pub(super) fn new(set: &'a PublishedSet) -> Self {
        Self {
            set,
            resources: set.urls.resources(),
            naming: set.urls.naming(),
            entry: Entry::default(),
        }
    }

    pub(super) fn write(&mut self, out: &mut Vec<u8>, record: &ChangeRecord) {
        let entry = &mut self.entry;
        self.naming.write_uri(&record.key, &mut entry.loc);
        entry.links.clear();
        // Clients of version 1.0 use `lastmod` as the time of the change. Any other value would
        // hide deletions, and renamed files with an old Last-Modified [rs-core-1.0 §12.1]. Clients
        // of 1.1 read `datetime`.
        entry.datetime = Some(exactly(record.time));
        entry.lastmod = entry.datetime;
        entry.change = Some(match record.kind {
            Kind::Create | Kind::Add => Change::Created,
            Kind::Remove | Kind::Delete => Change::Deleted,
            _ => Change::Updated,
        });
        if let Some(state) = &record.state {
            entry.digests.clone_from(&state.digests);
            entry.length = state.length;
            entry.media_type.clone_from(&state.media_type);
            entry.encoding.clone_from(&state.encoding);
            state_links(&self.resources, state, LinkDocument::ChangeList, &mut entry.links);
            if let Some(urls) = &self.set.versions {
                let change = Some((record.position, record.time));
                version_links(urls, &record.key, state, change, &mut entry.links);
            }
        } else {
            entry.digests.clear();
            (entry.length, entry.media_type, entry.encoding) = (None, None, None);
        }
        write_entry(out, Root::UrlSet, entry);
    }
}
