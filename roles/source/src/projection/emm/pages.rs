//! Pages of a feed, and the changes on each page.

use super::paths::{Feed, View};
use crate::publish::{PublishError, PublishedSet};
use abreast_core::{ChangeLog, ChangeRecord, Head, Kind, Order, Position, State};
use abreast_rdf::labels;
use abreast_webtypes::Timestamp;
use std::io::{self, Read as _};
use std::ops::ControlFlow;

/// Positions in which a feed of a type has a page, whatever is on it: so many are read to find the page before or behind another one.
const MAX_SCANNED: u64 = 10_000;

/// A feed with its log, for finding pages.
pub(super) struct Pages<'f, 'p> {
    feed: &'f Feed<'p>,
    log: &'f dyn ChangeLog,
    head: Head,
    /// Position where the log begins. A recreated log follows the changes of the log before it.
    begin: Position,
}

impl<'f, 'p> Pages<'f, 'p> {
    pub(super) fn new(feed: &'f Feed<'p>, log: &'f dyn ChangeLog) -> Result<Self, PublishError> {
        let head = log.head(feed.set.id)?;
        if head.importing {
            return Err(PublishError::Importing);
        }
        let begin = log.position_at(feed.set.id, head.created)?;
        Ok(Self { feed, log, head, begin })
    }

    pub(super) fn head(&self) -> &Head {
        &self.head
    }

    /// Position before the first change of this log.
    pub(super) fn begin(&self) -> Position {
        self.begin
    }

    pub(super) fn feed(&self) -> &'f Feed<'p> {
        self.feed
    }

    pub(super) fn log(&self) -> &'f dyn ChangeLog {
        self.log
    }

    /// Position of the last change before a time.
    pub(super) fn before(&self, time: Timestamp) -> Result<Option<Position>, PublishError> {
        let found = self.log.position_at(self.feed.set.id, time.plus_micros(-1))?;
        Ok(Some(found).filter(|found| *found > self.begin))
    }

    /// Position of the change before another change.
    pub(super) fn previous(&self, record: &ChangeRecord) -> Result<Option<Position>, PublishError> {
        // Positions have a gap where a log was recreated.
        match self.change(Position(record.position.0.saturating_sub(1)))? {
            Some(previous) => Ok(Some(previous.position)),
            None => self.before(record.time),
        }
    }

    /// Number of changes on all pages, if the pages have the whole log.
    pub(super) fn count(&self) -> Option<u64> {
        matches!(self.feed.view, View::History | View::Newest | View::Patches)
            .then(|| self.head.position.0 - self.begin.0)
    }

    /// Numbers of the pages with the oldest and the newest change. They are equal if the feed does
    /// not have changes.
    pub(super) fn ends(&self) -> Result<(u64, u64), PublishError> {
        let mut last = self.feed.last_page(&self.head);
        if matches!(self.feed.view, View::Type(_)) {
            last = self.last_since(last, self.head.position)?.unwrap_or(last);
        }
        let first = self.after(self.begin)?.unwrap_or(last);
        Ok((first, last))
    }

    /// Whether the number is in the range of pages. Positions have a gap where a log was recreated.
    pub(super) fn has(&self, page: u64) -> bool {
        (self.feed.page_of(self.begin.next())..=self.feed.last_page(&self.head)).contains(&page)
    }

    /// Number of the page with the first change after a position.
    fn after(&self, position: Position) -> Result<Option<u64>, PublishError> {
        let mut found = None;
        let mut visit = |record: &ChangeRecord| {
            if !self.has_page_of(record) {
                return ControlFlow::Continue(());
            }
            found = Some(self.feed.page_of(record.position));
            ControlFlow::Break(())
        };
        if self.feed.view == View::Latest {
            self.log.latest(self.feed.set.id, position, &mut visit)?;
        } else {
            self.log.read(self.feed.set.id, position, &mut visit)?;
        }
        Ok(found)
    }

    /// Distance between the pages that a feed of a type always has, in pages.
    fn interval(&self) -> u64 {
        (MAX_SCANNED / self.feed.per_page).max(1)
    }

    /// Whether the feed has the page with this change.
    fn has_page_of(&self, record: &ChangeRecord) -> bool {
        self.feed.view.kind_of(record).is_some()
            || self.feed.page_of(record.position).is_multiple_of(self.interval())
    }

    /// Number of the last page of a feed of a type with a position up to `last`. The search starts
    /// at the last page at or before `page` that the feed always has.
    fn last_since(&self, page: u64, last: Position) -> Result<Option<u64>, PublishError> {
        let certain = page / self.interval() * self.interval();
        let start = Position(certain.saturating_sub(1) * self.feed.per_page).max(self.begin);
        let mut found = None;
        self.log.read(self.feed.set.id, start, &mut |record| {
            if record.position > last {
                return ControlFlow::Break(());
            }
            if self.has_page_of(record) {
                found = Some(self.feed.page_of(record.position));
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Number of the next page, in the order of time.
    pub(super) fn later(&self, page: u64) -> Result<Option<u64>, PublishError> {
        self.after(Position(page * self.feed.per_page))
    }

    /// Number of the previous page, in the order of time.
    pub(super) fn earlier(&self, page: u64) -> Result<Option<u64>, PublishError> {
        let start = Position((page - 1) * self.feed.per_page);
        if start <= self.begin {
            return Ok(None);
        }
        if matches!(self.feed.view, View::Type(_)) {
            return self.last_since(page - 1, start);
        }
        let before = if self.feed.view == View::Latest {
            self.log.latest_before(self.feed.set.id, start.next())?
        } else {
            // Positions have a gap where a log was recreated.
            let mut time = self.head.time.next();
            self.log.read(self.feed.set.id, start, &mut |record| {
                time = record.time;
                ControlFlow::Break(())
            })?;
            self.before(time)?
        };
        Ok(before
            .filter(|position| *position > self.begin)
            .map(|position| self.feed.page_of(position)))
    }

    /// Number of the page with the first change at or after a time; the last page if there is no
    /// such change.
    pub(super) fn at(&self, time: Timestamp) -> Result<u64, PublishError> {
        let before = self.log.position_at(self.feed.set.id, time.plus_micros(-1))?;
        let found = self.after(before.max(self.begin))?;
        found.map_or_else(|| self.ends().map(|(_, last)| last), Ok)
    }

    /// Positions of a page: after the first returned position, up to and including the second.
    pub(super) fn bounds(&self, page: u64) -> (Position, Position) {
        let start = Position((page - 1) * self.feed.per_page).max(self.begin);
        (start, Position(page * self.feed.per_page))
    }

    /// Changes after a position, up to and including another position.
    pub(super) fn range(
        &self,
        after: Position,
        last: Position,
    ) -> Result<Vec<ChangeRecord>, PublishError> {
        let mut changes = Vec::new();
        self.each(after, last, &mut |record| changes.push(record.clone()))?;
        if self.feed.view == View::Labels {
            let mut failed = None;
            changes.retain(|record| match self.changes_labels(record) {
                Ok(changes) => changes,
                Err(error) => {
                    failed.get_or_insert(error);
                    true
                }
            });
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(changes)
    }

    /// Visits the changes after a position, up to and including another; a feed of labels also
    /// visits changes without labels.
    pub(super) fn each(
        &self,
        after: Position,
        last: Position,
        visit: &mut dyn FnMut(&ChangeRecord),
    ) -> Result<(), PublishError> {
        let mut visit = |record: &ChangeRecord| {
            if record.position > last {
                return ControlFlow::Break(());
            }
            if self.feed.view.kind_of(record).is_some() {
                visit(record);
            }
            ControlFlow::Continue(())
        };
        if self.feed.view == View::Latest {
            self.log.latest(self.feed.set.id, after, &mut visit)?;
        } else {
            self.log.read(self.feed.set.id, after, &mut visit)?;
        }
        Ok(())
    }

    /// Reads the change at a position.
    pub(super) fn change(&self, position: Position) -> Result<Option<ChangeRecord>, PublishError> {
        if position <= self.begin {
            return Ok(None);
        }
        let mut found = None;
        self.log.read(self.feed.set.id, Position(position.0 - 1), &mut |record| {
            found = (record.position == position).then(|| record.clone());
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Whether a change adds, removes or alters a label; also `true` if the description before the
    /// change is no longer stored.
    fn changes_labels(&self, record: &ChangeRecord) -> Result<bool, PublishError> {
        if record.kind != Kind::Update {
            return Ok(true);
        }
        let set = self.feed.set;
        let Some(Descriptions { before, after, .. }) = descriptions(self.log, set, record)? else {
            return Ok(true);
        };
        let predicates = &set.feeds().label_predicates;
        Ok(labels(&before, &record.key, predicates) != labels(&after, &record.key, predicates))
    }
}

/// Descriptions before and after a change; empty if the entity did not exist.
pub(super) struct Descriptions {
    /// Position of the entity's previous change; 0 if the entity was imported.
    pub(super) former: Option<Position>,
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
}

/// Descriptions before and after a change; `None` if one of the two is no longer stored.
pub(super) fn descriptions(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    record: &ChangeRecord,
) -> Result<Option<Descriptions>, PublishError> {
    let versions = log.versions(set.id, &record.key, record.time, Order::NewestFirst, 2)?;
    let Some(of_change) = versions.first().filter(|version| version.time == record.time) else {
        return Ok(None);
    };
    let former = versions.get(1);
    // A resource that is new in the set does not have an earlier version.
    if former.is_none() && !matches!(record.kind, Kind::Create | Kind::Add) {
        return Ok(None);
    }
    let read = |state: Option<&State>| -> io::Result<Option<Vec<u8>>> {
        let Some(state) = state else { return Ok(Some(Vec::new())) };
        let Some(mut kept) = set.representations.open_kept(state)? else { return Ok(None) };
        let mut lines = Vec::with_capacity(state.length.unwrap_or_default() as usize);
        kept.read_to_end(&mut lines)?;
        Ok(Some(lines))
    };
    let before = read(former.and_then(|former| former.state.as_ref()));
    let after = read(of_change.state.as_ref());
    let (before, after) =
        (before.map_err(PublishError::Contents)?, after.map_err(PublishError::Contents)?);
    let former = former.map(|former| former.position);
    Ok(before.zip(after).map(|(before, after)| Descriptions { former, before, after }))
}
