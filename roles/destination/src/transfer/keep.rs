//! Outcomes of items: written to the database, counted and reported.

use super::{Transfer, created};
use crate::copy::transaction;
use crate::plan::damage::report_reserved;
use crate::report::error::{Error, ExitCode};
use crate::report::events::ItemAction;
use crate::report::failure::Failure;
use crate::report::reporter::Reporter;
use crate::sink::outcome::Outcome;
use crate::transfer::workers::DoneChunk;
use abreast_store::mirror::{Pending, PendingAction, PendingState, Row, Task};

impl Transfer<'_> {
    /// Takes the outcomes of a chunk; returns an error that prevents further work. The chunk is in
    /// the order of URIs, and the caller has started a transaction. If the sink settles items,
    /// their outcomes are not known before.
    pub(crate) fn take(
        &mut self,
        chunk: DoneChunk,
        report: &mut Reporter<'_>,
    ) -> Result<Option<Error>, Error> {
        if self.sink.settles_items() {
            self.unsettled.push(chunk);
            return Ok(None);
        }
        self.keep(chunk, report)
    }

    /// Ends a transaction in which outcomes were taken: first the contents are made durable, then
    /// the rows. Returns what makes it useless to continue.
    pub(crate) fn settle_and_commit(
        &mut self,
        report: &mut Reporter<'_>,
    ) -> Result<Option<Error>, Error> {
        self.settle()?;
        let mut fatal = None;
        for mut chunk in std::mem::take(&mut self.unsettled) {
            for (task, outcome) in &mut chunk {
                if let Some(failure) = self.unsettled_failure(&task.pending.uri) {
                    *outcome = Some(Outcome::Failed(failure));
                }
            }
            fatal = fatal.or(self.keep(chunk, report)?);
        }
        transaction::commit(self.mirror, self.options.dry_run)?;
        Ok(fatal)
    }

    /// Settles stored and deleted items. Failures are retained until the outcomes that they replace
    /// arrive: a thread may still have the chunk when some of its items are settled.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        self.unsettled_failures.extend(self.sink.settle(self.mirror)?);
        Ok(())
    }

    /// The reason why an item could not be settled.
    pub(super) fn unsettled_failure(&mut self, uri: &str) -> Option<Failure> {
        if self.unsettled_failures.is_empty() { None } else { self.unsettled_failures.remove(uri) }
    }

    /// When all outcomes were taken: each failure has replaced one.
    pub(crate) fn check_settled(&self) -> Result<(), Error> {
        let Some((uri, failure)) = self.unsettled_failures.iter().next() else { return Ok(()) };
        let message = format!("{uri} failed after it was settled: {}", failure.message);
        Err(Error::new("internal", ExitCode::Other, message).with_help("please report this"))
    }

    /// Discards the outcomes since the last commit.
    pub(crate) fn roll_back(&mut self) -> Result<(), Error> {
        self.unsettled.clear();
        self.unsettled_failures.clear();
        Ok(self.mirror.rollback()?)
    }

    /// Writes the outcomes of a chunk to the database, counts and reports them.
    pub(super) fn keep(
        &mut self,
        chunk: DoneChunk,
        report: &mut Reporter<'_>,
    ) -> Result<Option<Error>, Error> {
        let whole = chunk.iter().all(|(_, outcome)| outcome.is_some());
        // Only files have the listed time as their modification time.
        let has_times = chunk.first().is_some_and(|(_, outcome)| {
            matches!(outcome, Some(Outcome::Stored { row, .. }) if row.file_mtime != 0)
        });
        let as_planned = whole
            && chunk.iter().all(|(task, outcome)| {
                is_as_planned(task, outcome.as_ref(), self.rules.epoch, has_times)
            });
        let items = chunk.len() as u64;
        let ends = chunk
            .first()
            .zip(chunk.last())
            .map(|(first, last)| (first.0.pending.uri.clone(), last.0.pending.uri.clone()));
        let (mut fatal, mut new) = (None, 0);
        for (task, outcome) in chunk {
            let uri = &task.pending.uri;
            let is_kept = matches!(outcome, Some(Outcome::Stored { .. } | Outcome::Right { .. }));
            new += u64::from(is_kept && task.row.is_none());
            if is_kept {
                report.summary.newly_invalid += self.rules.rdf.keep(self.mirror, uri)?;
            }
            match outcome {
                Some(Outcome::Stored { row, created, notices }) => {
                    if !as_planned {
                        self.mirror.put_row(&row)?;
                    }
                    self.check_reserved(&task, &row, report)?;
                    let action = if created { ItemAction::Created } else { ItemAction::Updated };
                    *(if created {
                        &mut report.summary.created
                    } else {
                        &mut report.summary.updated
                    }) += 1;
                    report.summary.unverified += u64::from(!row.verified);
                    report.item(&*self.sink, &task.pending, row.leaf, action, row.length);
                    for notice in notices {
                        report.notice(notice.code, uri, &notice.message);
                    }
                }
                Some(Outcome::Right { row }) => {
                    self.mirror.put_row(&row)?;
                    self.check_reserved(&task, &row, report)?;
                    report.summary.unchanged += 1;
                    report.item(&*self.sink, &task.pending, row.leaf, ItemAction::Unchanged, 0);
                }
                Some(Outcome::Gone) if task.row.is_some() => {
                    // After all fetches, as far as the deletion guard allows.
                    self.mirror.put_pending(&Pending {
                        action: PendingAction::Delete,
                        ..task.pending.clone()
                    })?;
                    continue;
                }
                Some(Outcome::Gone) => {}
                Some(Outcome::Conflict) => {
                    self.mirror.set_pending_state(uri, PendingState::Conflict, false)?;
                    continue;
                }
                Some(Outcome::Failed(failure)) if failure.fatal => {
                    fatal = Some(failure.into_error());
                    self.mirror.set_pending_state(uri, PendingState::Failed, false)?;
                    continue;
                }
                Some(Outcome::Failed(failure)) => {
                    self.mirror.set_pending_state(uri, PendingState::Failed, true)?;
                    self.failed(&task, failure, report);
                    continue;
                }
                None => continue,
            }
            if !whole {
                self.mirror.forget_pending(uri)?;
            }
        }
        created::add(self.mirror, new)?;
        if let (true, Some((first, last))) = (whole, ends) {
            // One statement writes all rows; the plan has no other items between the first and the
            // last.
            if as_planned
                && self.mirror.put_rows_as_planned(&first, &last, self.rules.epoch, has_times)?
                    != items
            {
                return Err(Error::new(
                    "internal",
                    ExitCode::Other,
                    format!("the plan changed at {first}"),
                )
                .with_help("please report this"));
            }
            self.mirror.forget_fetches_between(&first, &last)?;
        }
        Ok(fatal)
    }

    /// Reports a resource that gets its reserved name in this run because of a folder that no
    /// resource needs.
    fn check_reserved(
        &self,
        task: &Task,
        row: &Row,
        report: &mut Reporter<'_>,
    ) -> Result<(), Error> {
        let had_it = task.row.as_ref().is_some_and(|before| before.leaf);
        if row.leaf && !had_it {
            report_reserved(self.mirror, Some(&*self.sink), report, &row.uri)
        } else {
            Ok(())
        }
    }
}

/// Whether the row to write contains only properties from the plan.
fn is_as_planned(task: &Task, outcome: Option<&Outcome>, epoch: i64, has_times: bool) -> bool {
    let (item, Some(Outcome::Stored { row, .. })) = (&task.pending, outcome) else { return false };
    let file_mtime = if has_times {
        row.modified.and_then(|modified| modified.checked_mul(1_000))
    } else {
        Some(0)
    };
    item.action == PendingAction::Fetch
        && row.uri == item.uri
        && !row.leaf
        && row.modified == item.modified
        && Some(row.length) == item.length
        && row.digests == item.digests
        && row.changed == item.changed
        && row.etag.is_none()
        && file_mtime == Some(row.file_mtime)
        && row.verified
        && row.epoch == epoch
}
