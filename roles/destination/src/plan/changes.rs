//! The plan for changes that were read.
//!
//! If a resource has several changes, the last one is applied. The time of a change is the time in
//! its document. For changes without a time, the order in the document decides, and among documents
//! the order of their intervals. The last modification of a resource never orders changes: in some
//! protocols it is the time of the change, and deletions often have the time before, or no time.

use crate::copy::common_base::CommonBase;
use crate::copy::key;
use crate::plan::alternates::Changed;
use crate::plan::deprecation::message;
use crate::plan::judge::{AsOf, Stated, Verdict, judge};
use crate::plan::left::Left;
use crate::plan::planner::PlanContext;
use crate::report::clock::{SECOND_MICROS, now};
use crate::report::error::Error;
use crate::sink::kept::is_distrusted;
use abreast_store::mirror::{Coming, Deprecated, Pending, PendingAction, Row, Task};
use abreast_webtypes::{Digests, Moment, Timestamp};

/// Changes planned together.
const ITEMS: usize = 512;

/// Contents of the database before changes are planned.
#[derive(Clone, Copy)]
struct Has {
    /// Whether resources are recorded as deleted.
    gone: bool,
    plan: bool,
}

impl PlanContext<'_, '_> {
    /// Plans the changes that `read` passes on if it returns `true`; otherwise discards them.
    pub(crate) fn plan_noted(
        &mut self,
        read: &mut dyn FnMut(&mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.planner.changed = Changed::default();
        self.planner.coming_bodies = None;
        self.planner.begin(self.report)?;
        self.planner.mirror.clear_scratch()?;
        let planned = read(self);
        self.requests.diagnostics.report(self.report);
        match &planned {
            Ok(true) => {
                self.planner.keep_bodies()?;
                self.planner.commit()?;
            }
            _ => self.planner.abandon(self.report)?,
        }
        self.planner.mirror.clear_scratch()?;
        planned.map(drop)
    }

    /// Stores the common start of the URIs of changes, while the base is not known.
    pub(crate) fn keep_common(&self, base: &CommonBase) -> Result<(), Error> {
        if let Some(base) = base.of_most(&self.planner.options.url)
            && self.planner.mirror.meta(key::BASE)?.is_none()
            && self.planner.mirror.meta(key::COMMON)?.is_none()
        {
            self.planner.mirror.set_meta(key::COMMON, Some(&base))?;
        }
        Ok(())
    }

    /// Plans an action for the newest change of each resource. Changes without a usable time
    /// happened before `until`.
    pub(crate) fn plan_coming(&mut self, until: Timestamp) -> Result<(), Error> {
        let (mut key, mut changes) = (String::new(), Vec::new());
        let (mut left, mut is_admitted) = (Left::new(self.planner.mirror)?, false);
        let mut admission = self.planner.admission.clone();
        let has =
            Has { gone: self.planner.mirror.has_gone()?, plan: self.planner.mirror.has_plan()? };
        loop {
            changes.clear();
            self.planner.mirror.coming_after(&key, ITEMS, &mut changes)?;
            let Some(last) = changes.last() else {
                if !is_admitted {
                    left.check(self.planner.options, &self.planner.options.url)?;
                }
                self.planner.mirror.limit_gone()?;
                return self.plan_deprecated();
            };
            key.clone_from(&last.task.pending.uri);
            for change in &mut changes {
                let Task { pending, row } = &change.task;
                left.note(self.planner.mirror, &pending.uri, row.is_some())?;
                is_admitted |= !left.is_of_other_scheme(&pending.uri)
                    && admission.as_mut().is_none_or(|rule| rule.check(&pending.uri).is_ok());
                self.plan_change(change, has, until)?;
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

    /// Plans a change.
    fn plan_change(
        &mut self,
        coming: &mut Coming,
        has: Has,
        until: Timestamp,
    ) -> Result<(), Error> {
        let Coming { task: Task { pending, row }, changed, until: ends, is_new, is_known } = coming;
        let mirror = self.planner.mirror;
        // Actions that follow from a possibly older list are planned again, and so are actions that
        // the list removed from the plan.
        let is_compared = self.report.summary.mode == crate::Mode::Baseline;
        let is_here = pending.changed.is_some()
            && row.as_ref().is_some_and(|row| row.changed >= pending.changed);
        let planned = if has.plan { mirror.task(&pending.uri)? } else { None };
        let is_due = *is_new && (is_compared && !is_here || planned.is_some());
        if *is_known && !is_due {
            return Ok(());
        }
        if pending.action == PendingAction::Leave {
            // After a Resource List the same resources are listed again.
            self.report.summary.excluded +=
                u64::from(self.report.summary.mode != crate::Mode::Baseline);
            self.planner.selection.leave(mirror, &pending.uri, row.is_some())?;
            return Ok(mirror.forget_pending(&pending.uri)?);
        }
        if pending.action.is_deletion() {
            if self.planner.selection.is_left(mirror, &pending.uri)? {
                return Ok(mirror.forget_pending(&pending.uri)?);
            }
        } else if let Some(row) = row {
            self.planner.selection.take_again(mirror, &pending.uri)?;
            crate::plan::damage::check_one(self, row)?;
        }
        let is_uncertain = self.planner.uncertain_from.is_some();
        let planned_time = planned.as_ref().and_then(|task| task.pending.changed);
        let is_later =
            planned_time.zip(*changed).is_some_and(|(planned, own)| planned > own.0.max(own.1));
        if is_later && !is_uncertain {
            // A later change is planned and not carried out yet.
            return Ok(());
        }
        let at = changed.map(|(first, last)| {
            Moment::between(Timestamp::from_micros(first), Timestamp::from_micros(last))
        });
        // The stored version is not final if another version was planned and could not be fetched.
        let settled = self.planner.settled.filter(|_| !is_uncertain && planned.is_none());
        let gone = if has.gone { mirror.gone(&pending.uri)? } else { None };
        let gone = gone.map(Timestamp::from_micros);
        let lost_until = self.planner.lost_until;
        let now = Some(now());
        let as_of = AsOf { at, is_uncertain, lost_until, now, settled, gone, listed: None };
        let mut digests = Digests::default();
        digests.set_from_bytes(&pending.digests);
        let stated = if pending.action.is_deletion() {
            Stated::Deleted
        } else {
            Stated::of(pending, &digests, true)
        };
        // The last run may have applied only some of the changes with the same time.
        let may_be_lost =
            |row: &Row| self.planner.uncertain_from.is_some_and(|from| row.epoch >= from);
        let is_in_doubt = *is_new || row.as_ref().is_some_and(may_be_lost);
        let mut verdict = judge(stated, as_of, row.as_ref());
        let is_unsigned = digests.strongest().is_none();
        if verdict == Verdict::Keep && row.is_some() && is_in_doubt && is_unsigned {
            verdict = Verdict::Fetch;
        }
        // The change that brought the stored version was read again. Other changes may have the
        // same time, if the time is coarse.
        let is_final = |last: i64| settled.is_some_and(|settled| last < settled.as_micros());
        let is_its_own = |row: &Row| {
            let is_its_time = changed.zip(row.changed).is_some_and(|((first, last), own)| {
                first == own && (first == last || is_final(last))
            });
            // If the time of the change is not known, this may be another one.
            is_its_time && gone.is_none() && !is_distrusted(row)
        };
        if verdict == Verdict::Fetch
            && is_unsigned
            && !is_in_doubt
            && row.as_ref().is_some_and(is_its_own)
        {
            verdict = Verdict::Keep;
        }
        let action = match verdict {
            Verdict::Fetch => Some(PendingAction::Fetch),
            Verdict::Touch => Some(PendingAction::Touch),
            Verdict::Delete => Some(pending.action),
            Verdict::Keep => None,
            Verdict::Unknown => return Ok(()),
        };
        // A change without a known time happened before it was read.
        let (first, last) = changed.unwrap_or((i64::MIN, i64::MAX));
        let is_undated = last.saturating_sub(first) >= SECOND_MICROS;
        if is_undated || pending.action.is_deletion() {
            // A change without a known end time happened before this or an earlier run read it.
            let read = gone.filter(|_| action.is_none()).unwrap_or(until).as_micros().max(first);
            let last = ends.unwrap_or(if last == i64::MAX { read } else { last });
            mirror.note_gone(&pending.uri, last)?;
        } else if gone.is_some() {
            mirror.is_back(&pending.uri)?;
            if let Some(row) = row.as_ref().filter(|_| action.is_none()) {
                // The time of its change is known by now.
                let changed = row.changed.max(changed.map(|changed| changed.0));
                mirror.put_row(&Row { changed, ..row.clone() })?;
            }
        }
        if let Some(action) = action {
            pending.action = action;
            self.planner.plan_chain(pending)?;
            mirror.put_pending(pending)?;
        } else {
            self.report.summary.unchanged += u64::from(row.is_some());
            if row.is_some() {
                mirror.set_access(&pending.uri, pending.access.as_deref())?;
            }
            mirror.forget_pending(&pending.uri)?;
        }
        Ok(())
    }
}
