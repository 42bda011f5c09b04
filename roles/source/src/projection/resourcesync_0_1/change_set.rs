//! Change sets [rs-0.1 §5.1, §6.1]: the current change set, and closed change sets.
//!
//! A change set is a page of the log, or a part of a longer page: a range of positions. The range
//! does not depend on the length of the written entries, so changed settings do not move its ends.
//! The last part of the open page is the current change set, which has a separate address. Each
//! change set links to the previous change set, so every change is in exactly one change set.

use super::entries::EntryWriter;
use super::paths::{ChangeSetNumber, SetDocument};
use super::values::{XML, exactly};
use super::{Output, PublishError, PublishedSet, Rendered};
use crate::projection::resourcesync::dumps::time_of;
use crate::projection::routes::Route as _;
use crate::publish::document::Whole;
use abreast_core::{ChangeLog, Page, Position};
use abreast_resourcesync::v0_1::{CHANGE_SET, Head, Link, Meta, Root, write_end, write_head};
use abreast_webtypes::Timestamp;
use std::ops::ControlFlow;

/// Positions of a change set. The document is below 10 MB [rs-0.1 §3.2] if entries have fewer than
/// 2,000 bytes on average; entries of resources with long paths omit the links to versions.
pub(super) const MAX_POSITIONS: u64 = 5_000;

/// Approximate bytes of an entry, to estimate the length of a document.
const ENTRY_BYTES: u64 = 600;
/// Number of pages that one query of the log reads.
const PAGES: usize = 1_000;

/// The changes of a set, as change sets.
pub(super) struct ChangeSets<'a> {
    pub(super) log: &'a dyn ChangeLog,
    pub(super) set: &'a PublishedSet,
    /// Positions of each change set.
    pub(super) positions: u64,
}

/// The positions of a change set: after `after`, up to `last`.
struct Part {
    number: ChangeSetNumber,
    after: Position,
    last: Position,
    /// Start of the period: the change set contains all changes since then, up to `last`.
    from: Timestamp,
    /// Time of the last change. If the part is empty, the start of its page.
    modified: Timestamp,
}

impl ChangeSets<'_> {
    /// Renders the current change set.
    pub(super) fn current(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        // Changes that are recorded in the meantime have later positions.
        let head = self.log.head(self.set.id)?;
        let page = self.page(head.open_page)?.ok_or(PublishError::NotFound)?;
        let part = self.parts(&page, head.position);
        self.document(&self.part(&page, part, head.position)?, output)
    }

    /// Renders a closed change set.
    pub(super) fn closed(
        &self,
        number: ChangeSetNumber,
        output: &mut dyn Output,
    ) -> Result<Rendered, PublishError> {
        let head = self.log.head(self.set.id)?.position;
        let page = self.page(number.page)?.ok_or(PublishError::NotFound)?;
        let end = page.last.unwrap_or(head);
        if !self.is_closed(&page, number.part, head) {
            return Err(PublishError::NotFound);
        }
        self.document(&self.part(&page, number.part, end)?, output)
    }

    /// Whether a closed change set has this number while the log ends at position `head`.
    pub(super) fn has(
        &self,
        number: ChangeSetNumber,
        head: Position,
    ) -> Result<bool, PublishError> {
        let page = self.page(number.page)?;
        Ok(page.is_some_and(|page| self.is_closed(&page, number.part, head)))
    }

    /// Numbers of all closed change sets, the oldest first.
    pub(super) fn all_closed(&self) -> Result<Vec<ChangeSetNumber>, PublishError> {
        let head = self.log.head(self.set.id)?.position;
        let (mut all, mut first) = (Vec::new(), 1);
        loop {
            let pages = self.log.pages(self.set.id, first, PAGES)?;
            for page in &pages {
                let parts = self.parts(page, page.last.unwrap_or(head));
                let numbers = (1..=parts).map(|part| ChangeSetNumber { page: page.number, part });
                all.extend(numbers.filter(|number| self.is_closed(page, number.part, head)));
            }
            match pages.last() {
                Some(page) if pages.len() == PAGES => first = page.number + 1,
                _ => return Ok(all),
            }
        }
    }

    fn page(&self, number: u64) -> Result<Option<Page>, PublishError> {
        let found = self.log.pages(self.set.id, number, 1)?.into_iter().next();
        Ok(found.filter(|page| page.number == number))
    }

    /// Number of parts of a page up to position `end`, at least one.
    fn parts(&self, page: &Page, end: Position) -> u64 {
        end.0.saturating_sub(page.after.0).div_ceil(self.positions).max(1)
    }

    /// Whether the page has the part, and the part is closed: another part or page follows.
    fn is_closed(&self, page: &Page, part: u64, head: Position) -> bool {
        match page.last {
            Some(last) => (1..=self.parts(page, last)).contains(&part),
            None => (1..self.parts(page, head)).contains(&part),
        }
    }

    /// The part of a page with this number, if the page ends at position `end`.
    fn part(&self, page: &Page, part: u64, end: Position) -> Result<Part, PublishError> {
        let position = |parts: u64| Position(page.after.0 + parts * self.positions).min(end);
        let (after, last) = (position(part - 1), position(part));
        let time = |position| {
            if position == page.after {
                return Ok(page.from);
            }
            time_of(self.log, self.set.id, position)
        };
        let number = ChangeSetNumber { page: page.number, part };
        Ok(Part { number, after, last, from: time(after)?, modified: time(last)? })
    }

    /// Number of the previous change set, or `None` for the first change set of the log.
    fn before(&self, number: ChangeSetNumber) -> Result<Option<ChangeSetNumber>, PublishError> {
        if number.part > 1 {
            return Ok(Some(ChangeSetNumber { part: number.part - 1, ..number }));
        }
        let Some(page) = self.page(number.page.saturating_sub(1))? else { return Ok(None) };
        let last = page.last.ok_or(PublishError::NotFound)?;
        Ok(Some(ChangeSetNumber { page: page.number, part: self.parts(&page, last) }))
    }

    fn document(&self, part: &Part, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        output.expect((part.last.0 - part.after.0) * ENTRY_BYTES);
        let prev = self.before(part.number)?.map(|number| {
            let href = SetDocument::ClosedChangeSet(number).url(&self.set.urls);
            Link { rel: format!("prev {CHANGE_SET}"), href, ..Link::default() }
        });
        let links = [Some(current_link(self.set)), prev].into_iter().flatten().collect();
        let mut bytes = begun(part.modified, links, period(part.from, part.modified));
        write_changes(self.log, self.set, (part.after, part.last), &mut bytes, output)?;
        write_end(&mut bytes, Root::UrlSet);
        Ok(Rendered { bytes, content_type: XML })
    }
}

/// Link to the current change set, which every change set and Sitemap contains.
pub(super) fn current_link(set: &PublishedSet) -> Link {
    let href = SetDocument::CurrentChangeSet.url(&set.urls);
    Link { rel: format!("current {CHANGE_SET}"), href, ..Link::default() }
}

/// The start of a document, up to its entries.
fn begun(modified: Timestamp, links: Vec<Link>, period: Meta) -> Vec<u8> {
    let mut bytes = Vec::new();
    let head = Head {
        change_set: true,
        modified: Some(exactly(modified)),
        links,
        metas: vec![period],
        ..Head::default()
    };
    write_head(&mut bytes, &head);
    bytes
}

/// Writes the changes after position `after`, up to `last`.
fn write_changes(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    (after, last): (Position, Position),
    bytes: &mut Vec<u8>,
    output: &mut dyn Output,
) -> Result<(), PublishError> {
    if after >= last {
        return Ok(());
    }
    let mut writer = EntryWriter::new(set);
    log.read(set.id, after, &mut |record| {
        if record.position > last {
            return ControlFlow::Break(());
        }
        writer.change(bytes, record);
        output.drain(bytes);
        if record.position == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(())
}

/// The pushed change set for a range of the log. The same range always gives the same bytes: the
/// only link leads to the current change set, whose address does not change.
///
/// # Errors
///
/// An error of the log.
pub(super) fn notification(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    after: Position,
    last: Position,
) -> Result<Vec<u8>, PublishError> {
    // If the log was recreated since, its earlier changes are missing: readers detect a gap.
    let since = time_of(log, set.id, after)?;
    let modified = if after < last { time_of(log, set.id, last)? } else { since };
    let mut bytes = begun(modified, vec![current_link(set)], period(since, modified));
    write_changes(log, set, (after, last), &mut bytes, &mut Whole)?;
    write_end(&mut bytes, Root::UrlSet);
    Ok(bytes)
}

/// The period of a change set. A reader detects by the period whether earlier change sets are
/// missing; the specification does not define an element for this purpose.
fn period(from: Timestamp, until: Timestamp) -> Meta {
    Meta { name: "DCTERMS.temporal".to_owned(), content: format!("start={from}; end={until}") }
}
