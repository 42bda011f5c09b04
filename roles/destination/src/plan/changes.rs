//! The plan for changes that were read.
//!
//! Of several changes of one resource the last one counts. The time of a change is the one that is
//! stated with it; where there is none, the order of the document decides, and among documents the
//! order of their spans. The last modification of a resource never orders changes: some protocols
//! have the time of the change there, and deletions often keep the one from before, or have none.

use crate::admit::Admission;
use crate::alternates::Changed;
use crate::common_base::CommonBase;
use crate::deprecation::message;
use crate::error::Error;
use crate::plan::comparison::compare;
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::state::key;
use abreast_core::Kind;
use abreast_store::mirror::{Deprecated, Pending, PendingAction, Row, Task};
use abreast_webtypes::{Digests, Timestamp};

/// Changes planned together.
const ITEMS: usize = 512;

/// The result of reading changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    /// Nothing has changed at the Source.
    Unchanged,
    /// The changes are in the plan.
    Planned,
    /// The lists do not have yet what was announced; what it means if they should have it.
    Late(String),
    /// Changes since the cursor cannot all be known; why.
    Gap(String),
}

/// The time that a document of changes is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// All changes since then are in it.
    pub(crate) from: Option<Timestamp>,
    /// All changes until then are in it; without it, there may be more.
    pub(crate) until: Option<Timestamp>,
}

/// One document of changes while it is read.
pub(crate) struct ReadingChanges {
    wants_base: bool,
    admission: Admission,
    item: Pending,
    /// The newest stated time.
    pub(crate) newest: Option<Timestamp>,
}

/// Facts that were collected while reading.
#[derive(Default)]
pub(crate) struct Seen {
    /// The newest stated time of a change.
    pub(crate) newest: Option<Timestamp>,
    /// A stated time at or after the cursor.
    pub(crate) reaches_cursor: bool,
    /// Any stated time at all.
    pub(crate) stated: bool,
    pub(crate) base: CommonBase,
    pub(crate) entries: u64,
    /// Where the list being read stands among all: less than those read before, when they are
    /// walked back.
    list: i64,
    /// Changes were left out because they could not be understood.
    pub(crate) left_out: bool,
    /// An entry without `datetime` comes after all entries read before it: the newest `datetime`
    /// among these, or `from`.
    pub(crate) last: Option<Timestamp>,
    /// The end of the list being read.
    until: Option<Timestamp>,
}

impl Seen {
    /// Changes read from here on are later than those read before, where no times are stated.
    pub(crate) const fn next_list(&mut self) {
        self.list += 1;
    }

    /// Changes read from here on count more than all those read so far, where their times are the
    /// same: the lists are read again.
    pub(crate) const fn read_again(&mut self) {
        // More lists than anybody reads.
        self.list = (self.list.div_euclid(1 << 32) + 2) << 32;
        self.last = None;
    }

    /// Changes read from here on are earlier than those read so far, where no times are stated.
    pub(crate) const fn earlier_list(&mut self) {
        self.list -= 1;
        self.last = None;
    }

    /// Begins a list, again if its transfer is repeated; `before` is the value of `last` when it
    /// began first.
    pub(crate) fn begin_list(&mut self, span: Span, before: Option<Timestamp>) {
        self.last = before.max(span.from);
        self.until = span.until;
    }

    /// Begins a list that is read without interruption.
    pub(crate) fn begin_whole_list(&mut self, span: Span) {
        self.begin_list(span, self.last);
    }
}

impl PlanContext<'_, '_> {
    /// Plans changes that `read` notes with [`PlanContext::note_change`]. What it plans counts if
    /// it returns [`Followed::Planned`], and is forgotten otherwise.
    pub(crate) fn plan_noted(
        &mut self,
        read: &mut dyn FnMut(&mut Self) -> Result<Followed, Error>,
    ) -> Result<Followed, Error> {
        self.planner.changed = Changed::default();
        self.planner.coming_bodies = None;
        self.planner.begin(self.report)?;
        self.planner.mirror.clear_scratch()?;
        let followed = read(self);
        self.requests.diagnostics.report(self.report);
        match &followed {
            Ok(Followed::Planned) => {
                self.planner.keep_bodies()?;
                self.planner.commit()?;
            }
            _ => self.planner.abandon(self.report)?,
        }
        self.planner.mirror.clear_scratch()?;
        followed
    }

    /// Keeps what the URIs of changes have in common, while no base is known.
    pub(crate) fn keep_common(&self, seen: &mut Seen) -> Result<(), Error> {
        if let Some(base) = std::mem::take(&mut seen.base).of_most(&self.planner.options.url)
            && self.planner.mirror.meta(key::BASE)?.is_none()
            && self.planner.mirror.meta(key::COMMON)?.is_none()
        {
            self.planner.mirror.set_meta(key::COMMON, Some(&base))?;
        }
        Ok(())
    }

    /// Before the changes of one document are noted.
    pub(crate) fn reading_changes(&self, url: &str) -> ReadingChanges {
        ReadingChanges {
            wants_base: self.planner.sink.is_none(),
            admission: Admission::new(
                url,
                &self.planner.options.allow_hosts,
                self.planner.options.allow_downgrade,
            ),
            item: Pending::default(),
            newest: None,
        }
    }

    /// Notes one change, unless it is older than what is known.
    pub(crate) fn note_change(
        &mut self,
        listed: &Listed<'_>,
        cursor: Timestamp,
        seen: &mut Seen,
        reading: &mut ReadingChanges,
    ) -> Result<(), Error> {
        let ReadingChanges { wants_base, admission, item, newest } = reading;
        seen.entries += 1;
        if let Some(changed) = listed.changed {
            seen.stated = true;
            *newest = (*newest).max(Some(changed));
            seen.reaches_cursor |= changed >= cursor;
            seen.last = seen.last.max(Some(changed));
            if changed < cursor {
                return Ok(());
            }
        } else if seen.until.is_some_and(|until| until < cursor) {
            return Ok(());
        }
        let time = listed.changed.or(seen.last).unwrap_or(Timestamp::MIN);
        self.planner.changes.note(listed);
        listed.pending_into(item);
        item.action = match listed.change {
            Some(Kind::Delete) => PendingAction::Delete,
            Some(Kind::Remove) => PendingAction::Remove,
            _ if self.planner.selection.excludes_change(listed) => PendingAction::Leave,
            _ => PendingAction::Fetch,
        };
        if *wants_base && admission.check(listed.href()).is_ok() {
            seen.base.note(&item.uri);
        }
        self.planner.history.note(listed);
        let (order, is_exact) = ((time.as_micros(), seen.list), listed.changed.is_some());
        if listed.change == Some(Kind::Deprecate) && item.action == PendingAction::Fetch {
            self.planner.mirror.put_deprecated(&item.uri, listed.replaced_by, order, is_exact)?;
        }
        if !listed.is_only_deprecated() {
            let is_first = self.planner.changed.is_first(&item.uri);
            self.planner.alternates.note_change(listed, is_first, order);
            self.planner.mirror.put_coming(item, order, is_exact)?;
            if let Some(patch) = item.body {
                self.planner.mirror.put_patch(&item.uri, order, patch)?;
            }
        } else if self.planner.mirror.row(&item.uri)?.is_none()
            && self.planner.mirror.task(&item.uri)?.is_none()
        {
            // It is in the set, and neither here nor planned. Any change that states what it is
            // counts more.
            self.planner.mirror.put_coming(item, (i64::MIN, i64::MIN), false)?;
        }
        if seen.entries.is_multiple_of(1_024) {
            self.requests.check_cancelled()?;
            self.report.status(seen.entries, 0, 0);
        }
        Ok(())
    }

    /// Turns the newest change of each resource into what is to be done about it.
    pub(crate) fn plan_coming(&mut self) -> Result<(), Error> {
        let (mut key, mut tasks) = (String::new(), Vec::new());
        loop {
            tasks.clear();
            self.planner.mirror.coming_after(&key, ITEMS, &mut tasks)?;
            let Some(last) = tasks.last() else { return self.plan_deprecated() };
            key.clone_from(&last.pending.uri);
            for task in &mut tasks {
                self.plan_change(task)?;
            }
        }
    }

    /// Reports the resources that are deprecated now. Their bytes stay, or come as planned.
    fn plan_deprecated(&mut self) -> Result<(), Error> {
        let (mut key, mut deprecated) = (String::new(), Vec::new());
        loop {
            deprecated.clear();
            self.planner.mirror.deprecated_after(&key, ITEMS, &mut deprecated)?;
            let Some(last) = deprecated.last() else { return Ok(()) };
            key.clone_from(&last.uri);
            let mut new = Vec::new();
            for resource in deprecated.drain(..) {
                if self.plan_one_deprecated(&resource)? {
                    new.push(resource);
                }
            }
            if let Some(sink) = self.planner.sink.as_deref().filter(|_| !new.is_empty()) {
                sink.deprecate(&new)?;
            }
        }
    }

    /// Whether a resource is deprecated now, and was not before.
    fn plan_one_deprecated(&mut self, resource: &Deprecated) -> Result<bool, Error> {
        let Deprecated { uri, replaced_by, time } = resource;
        let (row, task) = (self.planner.mirror.row(uri)?, self.planner.mirror.task(uri)?);
        if time.is_some() && row.as_ref().is_some_and(|row| row.changed >= *time) {
            // The change at the cursor is read again by each run.
            return Ok(false);
        }
        let mut is_described_later = false;
        match (task, row) {
            (Some(Task { pending, .. }), _) if pending.action.is_deletion() => return Ok(false),
            (Some(Task { pending, .. }), _) => {
                is_described_later = pending.describes() && replaced_by.is_empty();
                let changed = pending.changed.max(*time);
                self.planner.mirror.put_pending(&Pending { changed, ..pending })?;
            }
            (None, Some(row)) => {
                let changed = row.changed.max(*time);
                self.planner.mirror.put_row(&Row { changed, ..row })?;
            }
            (None, None) => return Ok(false),
        }
        let is_reported_later =
            is_described_later && self.planner.deprecations.wait_for(uri, self.planner.mirror)?;
        if !is_reported_later {
            self.report.notice("resource.deprecated", uri, &message(replaced_by));
        }
        Ok(true)
    }

    fn plan_change(&mut self, task: &mut Task) -> Result<(), Error> {
        let Task { pending, row } = task;
        if pending.action == PendingAction::Leave {
            // After a Resource List the same resources are listed again.
            self.report.summary.excluded +=
                u64::from(self.report.summary.mode != crate::Mode::Baseline);
            self.planner.selection.leave(self.planner.mirror, &pending.uri, row.is_some())?;
            return Ok(self.planner.mirror.forget_pending(&pending.uri)?);
        }
        if pending.action.is_deletion() {
            if self.planner.selection.is_left(self.planner.mirror, &pending.uri)? {
                return Ok(self.planner.mirror.forget_pending(&pending.uri)?);
            }
        } else if let Some(row) = row {
            self.planner.selection.take_again(self.planner.mirror, &pending.uri)?;
            crate::damage::check_one(self, row)?;
        }
        // Of several changes within one second of a coarse clock only the first may have been
        // applied.
        let fine = |changed: i64| changed % 1_000_000 != 0;
        let mut applied = row
            .as_ref()
            .is_some_and(|row| row.changed.is_some_and(fine) && row.changed == pending.changed);
        // What is here may be of a change that the Source does not have any more.
        if let Some(from) = self.planner.uncertain_from {
            applied &= row.as_ref().is_none_or(|row| row.epoch < from);
        }
        if applied && let Some(planned) = self.planner.mirror.task(&pending.uri)? {
            applied = planned.pending.changed == pending.changed;
        }
        let action = if pending.action.is_deletion() {
            row.as_ref().map(|_| pending.action)
        } else {
            let mut digests = Digests::default();
            digests.set_from_bytes(&pending.digests);
            // A change that was applied already needs no request, unless something else shows that
            // it differs.
            match compare(pending, &digests, row.as_ref()) {
                Some(PendingAction::Fetch) if applied && digests.strongest().is_none() => None,
                action => action,
            }
        };
        if let Some(action) = action {
            pending.action = action;
            self.planner.plan_chain(pending)?;
            self.planner.mirror.put_pending(pending)?;
        } else {
            self.report.summary.unchanged += u64::from(row.is_some());
            if row.is_some() {
                self.planner.mirror.set_access(&pending.uri, pending.access.as_deref())?;
            }
            self.planner.mirror.forget_pending(&pending.uri)?;
        }
        Ok(())
    }
}
