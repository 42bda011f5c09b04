//! The writer's data about a set between two batches, and how pages follow the set's log.

use crate::log::shards::LiveShards;
use crate::log::version_state::{Collector, References, Versions};
use abreast_core::{Beginning, Head, NewSet, Page, PageRule, Position};
use abreast_webtypes::Timestamp;

/// The open page, which gets further changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenPage {
    pub(crate) number: u64,
    pub(crate) after: Position,
    pub(crate) from: Timestamp,
    /// Time of the page's first change.
    pub(crate) first: Option<Timestamp>,
}

impl OpenPage {
    pub(crate) const fn page(&self) -> Page {
        Page { number: self.number, after: self.after, last: None, from: self.from, until: None }
    }
}

/// The data about a set that the writer needs to record the next change.
#[derive(Clone, Debug)]
pub(crate) struct SetState {
    pub(crate) created: Timestamp,
    pub(crate) importing: bool,
    pub(crate) in_log: bool,
    pub(crate) rule: PageRule,
    pub(crate) position: Position,
    /// Time of the last change; the set's creation if the log is empty.
    pub(crate) time: Timestamp,
    pub(crate) page: OpenPage,
    pub(crate) resources: u64,
    pub(crate) shards: LiveShards,
    pub(crate) versions: Versions,
    /// The values in the store.
    pub(crate) stored_versions: Versions,
    /// Changes by the batch to the counts of needed contents, until they are written.
    pub(crate) references: References,
}

impl SetState {
    /// A new set, created now. A set with [`Beginning::Base`] is importing until its base is
    /// complete.
    pub(crate) fn new(created: Timestamp, new: &NewSet, shards: LiveShards) -> Self {
        let page = OpenPage { number: 1, after: Position(0), from: created, first: None };
        let position = Position(0);
        let versions = Versions::default();
        Self {
            created,
            importing: new.beginning == Beginning::Base || new.incomplete,
            in_log: new.beginning == Beginning::Log,
            rule: new.page_rule,
            position,
            time: created,
            page,
            resources: 0,
            shards,
            versions,
            stored_versions: versions,
            references: References::new(),
        }
    }

    /// Whether the base is being imported; changes are refused until it is complete.
    pub(crate) const fn takes_base(&self) -> bool {
        self.importing && !self.in_log
    }

    pub(crate) const fn head(&self) -> Head {
        Head {
            position: self.position,
            time: self.time,
            created: self.created,
            resources: self.resources,
            open_page: self.page.number,
            importing: self.importing,
            in_log: self.in_log,
            versions_since: match self.versions {
                Versions { keep: false, .. } => None,
                Versions { since: Some(since), .. } => Some(since),
                Versions { begun, .. } => begun,
            },
            collected: {
                let Collector { counted, aged, sized, .. } = self.versions.collector;
                counted.0 + aged.0 + sized.0
            },
        }
    }

    /// Ends the import. The log starts now, unless the set was created with a log.
    pub(crate) fn complete_import(&mut self, now: Timestamp) {
        self.importing = false;
        if self.in_log {
            return;
        }
        self.created = now.max(self.created);
        self.time = self.created;
        self.page.from = self.created;
    }

    /// The page to close before a change at `time` is recorded, because it is too old, or full
    /// under a new rule.
    pub(crate) fn close_before(&mut self, time: Timestamp) -> Option<Page> {
        let first = self.page.first?;
        let age = time.as_micros().saturating_sub(first.as_micros());
        let old = i64::try_from(self.rule.age.as_micros()).is_ok_and(|limit| age > limit);
        if old || self.is_full() { Some(self.close()) } else { None }
    }

    /// Adds a change to the open page; returns the page if this closes it.
    pub(crate) fn recorded(&mut self, position: Position, time: Timestamp) -> Option<Page> {
        (self.position, self.time) = (position, time);
        self.page.first.get_or_insert(time);
        if self.is_full() { Some(self.close()) } else { None }
    }

    fn is_full(&self) -> bool {
        self.position.0 - self.page.after.0 >= u64::from(self.rule.changes)
    }

    fn close(&mut self) -> Page {
        let closed = Page { last: Some(self.position), until: Some(self.time), ..self.page.page() };
        self.page = OpenPage {
            number: closed.number + 1,
            after: self.position,
            from: self.time,
            first: None,
        };
        closed
    }
}
