//! Change sets [rs-0.1 §5.1, §6.1]: the current one, and those that are closed.
//!
//! A change set is a page of the log, or a part of one where the page is longer than a Sitemap may
//! be: the changes in their order up to the last that fits, so that a part never changes once
//! another follows. The last part of the open page is the current change set, under an address of
//! its own. Each names the one before it, so nothing falls between two, and nothing is in two.

use super::entries::EntryWriter;
use super::paths::{ChangeSetNumber, SetDocument};
use super::{Output, PublishError, PublishedSet, Rendered, XML, exactly};
use crate::projection::resourcesync::dumps::time_of;
use abreast_core::{ChangeLog, Page, Position, SetId};
use abreast_resourcesync::v0_1::{CHANGE_SET, Head, Link, Meta, Root, write_end, write_head};
use abreast_webtypes::Timestamp;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// Closed pages whose number of parts is remembered.
const MAX_KNOWN: usize = 10_000;

/// The number of parts of closed pages, by set and page: it never changes.
#[derive(Debug, Default)]
pub(super) struct KnownParts(Mutex<HashMap<(SetId, u64), u64>>);

/// The changes of a set, as change sets.
pub(super) struct ChangeSets<'a> {
    pub(super) log: &'a dyn ChangeLog,
    pub(super) set: &'a PublishedSet,
    pub(super) known: &'a KnownParts,
    /// Bytes and entries that one may have.
    pub(super) limits: Limits,
}

/// What a document may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) bytes: usize,
    pub(super) entries: u64,
}

/// A change set, its entries written.
struct Part {
    number: u64,
    entries: Vec<u8>,
    /// All changes since then are in it, up to the last.
    from: Timestamp,
    /// The time of its last change; of the page's beginning while there is none.
    modified: Timestamp,
}

impl ChangeSets<'_> {
    /// The current one.
    pub(super) fn current(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        let head = self.log.head(self.set.id)?;
        let page = self.page(head.open_page)?.ok_or(PublishError::NotFound)?;
        output.expect(head.position.0.saturating_sub(page.after.0) * 400);
        let part = self.part(&page, u64::MAX)?;
        let number = ChangeSetNumber { page: page.number, part: part.number };
        Ok(self.document(&part, self.before(number)?))
    }

    /// A closed one.
    pub(super) fn closed(
        &self,
        number: ChangeSetNumber,
        output: &mut dyn Output,
    ) -> Result<Rendered, PublishError> {
        let page = self.page(number.page)?.ok_or(PublishError::NotFound)?;
        let last = match page.last {
            Some(last) => last,
            None => self.log.head(self.set.id)?.position,
        };
        output.expect(last.0.saturating_sub(page.after.0) * 400);
        let part = self.part(&page, number.part)?;
        let is_last = page.last.is_none() && self.parts(&page)? == number.part;
        if part.number != number.part || is_last {
            return Err(PublishError::NotFound);
        }
        Ok(self.document(&part, self.before(number)?))
    }

    /// All closed ones, the oldest first.
    pub(super) fn all_closed(&self) -> Result<Vec<ChangeSetNumber>, PublishError> {
        let open_page = self.log.head(self.set.id)?.open_page;
        let first = self.log.pages(self.set.id, 1, 1)?.first().map_or(1, |page| page.number);
        let mut all = Vec::new();
        for number in first..=open_page {
            let Some(page) = self.page(number)? else { continue };
            let open = u64::from(number == open_page);
            let parts = self.parts(&page)?.saturating_sub(open);
            all.extend((1..=parts).map(|part| ChangeSetNumber { page: number, part }));
        }
        Ok(all)
    }

    fn page(&self, number: u64) -> Result<Option<Page>, PublishError> {
        let found = self.log.pages(self.set.id, number, 1)?.into_iter().next();
        Ok(found.filter(|page| page.number == number))
    }

    /// The one before another; none before the first of the log.
    fn before(&self, number: ChangeSetNumber) -> Result<Option<ChangeSetNumber>, PublishError> {
        if number.part > 1 {
            return Ok(Some(ChangeSetNumber { part: number.part - 1, ..number }));
        }
        let Some(page) = self.page(number.page.saturating_sub(1))? else { return Ok(None) };
        Ok(Some(ChangeSetNumber { page: page.number, part: self.parts(&page)? }))
    }

    /// The number of parts of a page.
    fn parts(&self, page: &Page) -> Result<u64, PublishError> {
        let known = || self.known.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (self.set.id, page.number);
        if let Some(parts) = known().get(&place) {
            return Ok(*parts);
        }
        let parts = self.part(page, u64::MAX)?.number;
        if page.last.is_some() {
            let mut known = known();
            if known.len() >= MAX_KNOWN {
                known.clear();
            }
            known.insert(place, parts);
        }
        Ok(parts)
    }

    /// A part of a page, or its last one if it has fewer.
    fn part(&self, page: &Page, number: u64) -> Result<Part, PublishError> {
        let mut part =
            Part { number: 1, entries: Vec::new(), from: page.from, modified: page.from };
        let (mut writer, mut count) = (EntryWriter::new(self.set), 0);
        self.log.read(self.set.id, page.after, &mut |record| {
            if page.last.is_some_and(|last| record.position > last) {
                return ControlFlow::Break(());
            }
            let before = part.entries.len();
            writer.change(&mut part.entries, record);
            count += 1;
            if count > 1 && (part.entries.len() > self.limits.bytes || count > self.limits.entries)
            {
                if part.number == number {
                    part.entries.truncate(before);
                    return ControlFlow::Break(());
                }
                part.entries.drain(..before);
                part.number += 1;
                part.from = part.modified;
                count = 1;
            }
            part.modified = record.time;
            ControlFlow::Continue(())
        })?;
        Ok(part)
    }

    fn document(&self, part: &Part, before: Option<ChangeSetNumber>) -> Rendered {
        let prev = before.map(|number| {
            let href = SetDocument::ClosedChangeSet(number).url(&self.set.urls);
            Link { rel: format!("prev {CHANGE_SET}"), href, ..Link::default() }
        });
        let links = [Some(current_link(self.set)), prev].into_iter().flatten().collect();
        let period = period(part.from, part.modified);
        let bytes = written(part.modified, links, vec![period], &part.entries);
        Rendered { bytes, modified: Some(part.modified), content_type: XML }
    }
}

/// The link to the current change set.
pub(super) fn current_link(set: &PublishedSet) -> Link {
    let href = SetDocument::CurrentChangeSet.url(&set.urls);
    Link { rel: format!("current {CHANGE_SET}"), href, ..Link::default() }
}

fn written(modified: Timestamp, links: Vec<Link>, metas: Vec<Meta>, entries: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() + 1_024);
    let head = Head {
        change_set: true,
        modified: Some(exactly(modified)),
        links,
        metas,
        ..Head::default()
    };
    write_head(&mut bytes, &head);
    bytes.extend_from_slice(entries);
    write_end(&mut bytes, Root::UrlSet);
    bytes
}

/// The change set of a range of the log, as it is pushed. The same range is the same bytes: all that
/// it links to is the current change set, whose address stays.
///
/// # Errors
/// When the log fails.
pub(super) fn notification(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    after: Position,
    last: Position,
) -> Result<Vec<u8>, PublishError> {
    // Changes of a log that was recreated since are no longer there: readers see a gap.
    let since = time_of(log, set.id, after)?;
    let mut modified = since;
    let (mut entries, mut writer) = (Vec::new(), EntryWriter::new(set));
    if after < last {
        log.read(set.id, after, &mut |record| {
            if record.position > last {
                return ControlFlow::Break(());
            }
            modified = record.time;
            writer.change(&mut entries, record);
            if record.position == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    let period = period(since, modified);
    Ok(written(modified, vec![current_link(set)], vec![period], &entries))
}

/// The time that a change set is about. So a reader knows whether it misses others before it: the
/// specification has nothing for that.
fn period(from: Timestamp, until: Timestamp) -> Meta {
    Meta { name: "DCTERMS.temporal".to_owned(), content: format!("start={from}; end={until}") }
}
