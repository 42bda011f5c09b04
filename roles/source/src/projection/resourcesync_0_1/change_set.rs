//! Change sets [rs-0.1 §5.1, §6.1]: the current one, and those that are closed.
//!
//! A change set is a page of the log, or of a longer page a part: a range of positions that never
//! depends on what is written for its changes, so that settings do not move its ends. The last part
//! of the open page is the current change set, under an address of its own. Each names the one
//! before it, so nothing falls between two, and nothing is in two.

use super::entries::EntryWriter;
use super::paths::{ChangeSetNumber, SetDocument};
use super::values::{XML, exactly};
use super::{Output, PublishError, PublishedSet, Rendered};
use crate::projection::resourcesync::dumps::time_of;
use crate::publish::document::Whole;
use abreast_core::{ChangeLog, Page, Position};
use abreast_resourcesync::v0_1::{CHANGE_SET, Head, Link, Meta, Root, write_end, write_head};
use abreast_webtypes::Timestamp;
use std::ops::ControlFlow;

/// Positions of a change set. Below 10 MB [rs-0.1 §3.2] if an entry has fewer than 2,000 bytes;
/// links to versions are left out of longer ones.
pub(super) const MAX_POSITIONS: u64 = 5_000;

/// Bytes of an entry, about.
const ENTRY_BYTES: u64 = 600;
/// Pages that are read at a time.
const PAGES: usize = 1_000;

/// The changes of a set, as change sets.
pub(super) struct ChangeSets<'a> {
    pub(super) log: &'a dyn ChangeLog,
    pub(super) set: &'a PublishedSet,
    /// Positions that one has.
    pub(super) positions: u64,
}

/// The positions of a change set: behind the first, up to the second.
struct Part {
    number: ChangeSetNumber,
    after: Position,
    last: Position,
    /// All changes since then are in it, up to the last.
    from: Timestamp,
    /// The time of its last change; of the beginning of its page while there is none.
    modified: Timestamp,
}

impl ChangeSets<'_> {
    /// The current one.
    pub(super) fn current(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        // Whatever is recorded meanwhile is behind this position.
        let head = self.log.head(self.set.id)?;
        let page = self.page(head.open_page)?.ok_or(PublishError::NotFound)?;
        let part = self.parts(&page, head.position);
        self.document(&self.part(&page, part, head.position)?, output)
    }

    /// A closed one.
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

    /// Whether there is a closed one of that number while the log ends at a position.
    pub(super) fn has(
        &self,
        number: ChangeSetNumber,
        head: Position,
    ) -> Result<bool, PublishError> {
        let page = self.page(number.page)?;
        Ok(page.is_some_and(|page| self.is_closed(&page, number.part, head)))
    }

    /// All closed ones, the oldest first.
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

    /// The parts of a page up to a position, at least one.
    fn parts(&self, page: &Page, end: Position) -> u64 {
        end.0.saturating_sub(page.after.0).div_ceil(self.positions).max(1)
    }

    /// Whether a page has that part, and another follows it.
    fn is_closed(&self, page: &Page, part: u64, head: Position) -> bool {
        match page.last {
            Some(last) => (1..=self.parts(page, last)).contains(&part),
            None => (1..self.parts(page, head)).contains(&part),
        }
    }

    /// A part of a page that ends at a position.
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

    /// The one before another; none before the first of the log.
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

/// The link to the current change set.
pub(super) fn current_link(set: &PublishedSet) -> Link {
    let href = SetDocument::CurrentChangeSet.url(&set.urls);
    Link { rel: format!("current {CHANGE_SET}"), href, ..Link::default() }
}

/// A document up to its entries.
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

/// Writes the changes behind a position up to another.
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

/// The change set of a range of the log, as it is pushed. The same range is the same bytes: all that
/// it links to is the current change set, whose address does not change.
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
    let modified = if after < last { time_of(log, set.id, last)? } else { since };
    let mut bytes = begun(modified, vec![current_link(set)], period(since, modified));
    write_changes(log, set, (after, last), &mut bytes, &mut Whole)?;
    write_end(&mut bytes, Root::UrlSet);
    Ok(bytes)
}

/// The time that a change set is about. So a reader knows whether it misses others before it: the
/// specification has nothing for that.
fn period(from: Timestamp, until: Timestamp) -> Meta {
    Meta { name: "DCTERMS.temporal".to_owned(), content: format!("start={from}; end={until}") }
}
