//! Deletions: carried out after everything else, as far as the deletion guard allows.

use super::fetches::READ_ITEMS;
use super::guard::{Numbers, Verdict, WAITS_MAX};
use super::{Transfer, created};
use crate::copy::{key, transaction};
use crate::plan::damage::plan_name;
use crate::report::error::Error;
use crate::report::events::ItemAction;
use crate::report::lasting::Held;
use crate::report::options::MaxDelete;
use crate::report::reporter::Reporter;
use abreast_store::mirror::{PendingAction, PendingState, Task};
use abreast_webtypes::count;
use std::fmt::Write as _;
use std::sync::Arc;

/// Items deleted together.
const DELETED_TOGETHER: usize = 128;

impl Transfer<'_> {
    /// Whether deletions may be carried out, after everything else. Others are held back.
    pub(super) fn may_delete(&mut self, report: &mut Reporter<'_>) -> Result<bool, Error> {
        let numbers = self.numbers(self.mirror.pending_counts()?.deletes, report)?;
        match numbers.judge(self.options.max_delete) {
            Verdict::Allowed => return Ok(numbers.due > 0),
            Verdict::Beyond(allowed) => {
                report.summary.held = self.mirror.hold_deletes()?;
                self.report_limit(&numbers, allowed, report)?;
            }
            Verdict::CutShort => report.summary.held = self.mirror.hold_deletes()?,
            Verdict::Wait => self.wait(false, report)?,
            Verdict::WaitIfAbsent => self.wait(true, report)?,
        }
        if self.options.dry_run {
            self.list_held(report)?;
        }
        Ok(report.summary.held < numbers.due)
    }

    /// The numbers by which deletions are judged.
    fn numbers(&self, due: u64, report: &Reporter<'_>) -> Result<Numbers, Error> {
        let (limit, created) = (self.options.max_delete, created::count(self.mirror)?);
        let enough = limit.enough_for(due).max(MaxDelete::Default.enough_for(due));
        let rows = if due > 0 {
            self.mirror.count_rows_up_to(enough.saturating_add(created))?
        } else {
            0
        };
        let mut numbers = Numbers {
            due,
            moved: 0,
            rows,
            created,
            new_failures: report.new_failures,
            new_faults: report.new_faults,
            is_cut_short: report.summary.budget_spent,
        };
        // A number from the user is a number of deletions.
        if limit == MaxDelete::Default && numbers.is_beyond(limit) {
            let epoch = self.mirror.meta(key::EPOCH)?.and_then(|text| text.parse().ok());
            numbers.moved = self.mirror.count_moved(epoch.unwrap_or(i64::MAX))?;
        }
        Ok(numbers)
    }

    /// Reports that there are more deletions than are allowed.
    fn report_limit(
        &self,
        numbers: &Numbers,
        allowed: u64,
        report: &mut Reporter<'_>,
    ) -> Result<(), Error> {
        let due = numbers.due;
        report.summary.delete_limit = true;
        let mut message = format!(
            "{} would be deleted; the limit per run is {allowed}; nothing was deleted",
            count(due, "resource")
        );
        if let Some(Held { since, of: Some(size), .. }) = report.lasting.held_before() {
            let _ = write!(
                message,
                "\n  held since {since}, when the copy had {}",
                count(*size, "resource")
            );
            report.lasting.size = Some(*size);
        } else {
            let rows = self.mirror.count_rows()?;
            report.lasting.size = Some(Numbers { rows, ..*numbers }.size());
        }
        let _ = write!(
            message,
            "\n  help: check them with `--dry-run`, then run once with `--max-delete {due}`"
        );
        report.problem("delete.limit", &self.options.url, &message);
        Ok(())
    }

    /// Holds deletions because of what failed in this run for the first time.
    fn wait(&self, only_absent: bool, report: &mut Reporter<'_>) -> Result<(), Error> {
        let held = self.mirror.hold_waiting(WAITS_MAX, only_absent)?;
        report.summary.held = held;
        if held > 0 {
            let message = format!("deletions that wait for a run without new failures: {held}");
            report.notice("delete.held", &self.options.url, &message);
        }
        Ok(())
    }

    /// Called after the deletions. Resources that are created from now on are part of the copy,
    /// unless more deletions than allowed remain.
    pub(super) fn conclude_guard(&self, report: &Reporter<'_>) -> Result<(), Error> {
        if created::count(self.mirror)? == 0 {
            return Ok(());
        }
        let remaining = self.numbers(self.mirror.count_deletes()?, report)?;
        if remaining.is_beyond(self.options.max_delete) {
            return Ok(());
        }
        created::restart(self.mirror)
    }

    fn list_held(&self, report: &Reporter<'_>) -> Result<(), Error> {
        let (mut key, mut tasks) = (String::new(), Vec::new());
        loop {
            tasks.clear();
            self.mirror.held_after(&key, READ_ITEMS, &mut tasks)?;
            let Some(last) = tasks.last() else { return Ok(()) };
            key.clone_from(&last.pending.uri);
            for task in &tasks {
                let leaf = task.row.as_ref().is_some_and(|row| row.leaf);
                report.item(&*self.sink, &task.pending, leaf, ItemAction::Held, 0);
            }
        }
    }

    /// Deletes the planned resources, if they are in the database.
    pub(super) fn apply_deletes(&mut self, report: &mut Reporter<'_>) -> Result<(), Error> {
        report.begin_phase("deleting");
        let total = self.mirror.pending_counts()?.deletes;
        if total == 0 {
            return Ok(());
        }
        let sink = Arc::clone(&self.sink);
        let mut writer = Arc::clone(&sink).writer();
        let (mut key, mut tasks, mut finished) = (String::new(), Vec::new(), 0);
        let mut moving = 0;
        loop {
            self.requests.check_cancelled()?;
            tasks.clear();
            self.mirror.deletes_after(&key, DELETED_TOGETHER, &mut tasks)?;
            let Some(end) = tasks.last() else { break };
            key.clone_from(&end.pending.uri);
            for at in (0..tasks.len()).rev() {
                if self.is_moving(&tasks[at])? {
                    tasks.remove(at);
                    moving += 1;
                }
            }
            transaction::begin(self.mirror, self.options.dry_run)?;
            let results = self.requests.runtime.block_on(writer.delete(&tasks));
            // If the sink settles items, their outcomes are known only after that.
            if sink.settles_items() {
                self.settle()?;
            }
            for (task, result) in tasks.iter().zip(results) {
                let uri = &task.pending.uri;
                match self.unsettled_failure(uri).map_or(result, Err) {
                    Ok(deleted) => {
                        if deleted.gone {
                            let leaf = task.row.as_ref().is_some_and(|row| row.leaf);
                            report.summary.deleted += 1;
                            report.item(&*sink, &task.pending, leaf, ItemAction::Deleted, 0);
                            if task.pending.action == PendingAction::Remove {
                                report.notice(
                                    "resource.removed",
                                    uri,
                                    "the Source reports that it left the set, not that it was deleted",
                                );
                            }
                        }
                        for notice in deleted.notices {
                            report.notice(notice.code, uri, &notice.message);
                        }
                        self.mirror.delete_row(uri)?;
                        self.mirror.forget_pending(uri)?;
                        // A resource whose plain name was needed for a folder gets the name again
                        // after the folder was deleted.
                        for above in sink.resources_above(uri) {
                            plan_name(self.mirror, &above)?;
                        }
                    }
                    Err(failure) if failure.fatal => {
                        self.end_deleting()?;
                        return Err(failure.into_error());
                    }
                    Err(failure) => {
                        self.mirror.set_pending_state(uri, PendingState::Failed, true)?;
                        self.failed(task, failure, report);
                    }
                }
                finished += 1;
                report.status(finished, total, 0);
            }
            self.check_settled()?;
            self.end_deleting()?;
        }
        if moving > 0 {
            report.summary.held += moving;
            let message =
                format!("copies that are kept until what they moved to is here: {moving}");
            report.notice("delete.held", &self.options.url, &message);
        }
        // Folders that are empty now are removed first.
        drop(writer);
        self.apply_fetches(report)
    }

    /// Whether a resource moved to one that is still to be fetched: until then, this copy of the
    /// bytes is the only one.
    fn is_moving(&self, task: &Task) -> Result<bool, Error> {
        let Some(target) = task.pending.moved_to() else { return Ok(false) };
        Ok(self.mirror.task(target)?.is_some_and(|task| !task.pending.action.is_deletion()))
    }

    /// Ends the transaction of some deletions, and settles them if necessary.
    fn end_deleting(&mut self) -> Result<(), Error> {
        if !self.sink.settles_items() {
            self.settle()?;
        }
        transaction::commit(self.mirror, self.options.dry_run)
    }
}
