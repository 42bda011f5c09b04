//! Dry runs: the actions that a run would carry out, by the same rules and the files in the folder.
//!
//! A dry run is a single transaction of the database that is never committed, so outcomes are
//! recorded as in a real run, and the deletion guard counts the same rows. Bytes are not fetched,
//! so failures that only the bytes show, such as a wrong digest, are not predicted.

use super::Transfer;
use super::fetches::{READ_ITEMS, in_the_way};
use crate::report::error::Error;
use crate::report::failure::Failure;
use crate::report::reporter::Reporter;
use crate::sink::Prepared;
use crate::sink::outcome::Outcome;
use crate::transfer::store::{Storer, accept};
use abreast_store::mirror::Task;
use std::sync::Arc;

impl Transfer<'_> {
    /// Records the predicted outcomes of due items, instead of fetching them.
    pub(super) fn rehearse_fetches(&mut self, report: &mut Reporter<'_>) -> Result<(), Error> {
        report.begin_phase("comparing");
        let total = self.mirror.pending_counts()?.fetches;
        let mut finished = 0;
        let mut storer = Storer::new(&self.sink, &self.rules);
        // Items that need a folder in place of a file are processed again after the file would have
        // been moved.
        for again in [false, true] {
            let (mut key, mut tasks) = (String::new(), Vec::new());
            loop {
                self.requests.check_cancelled()?;
                tasks.clear();
                self.mirror.fetches_after(&key, READ_ITEMS, &mut tasks)?;
                let Some(last) = tasks.last() else { break };
                key.clone_from(&last.pending.uri);
                finished += tasks.len() as u64;
                let mut chunk = Vec::with_capacity(tasks.len());
                for task in tasks.drain(..) {
                    let outcome = self.rehearse(&mut storer, &task, again)?;
                    chunk.push((task, Some(outcome)));
                }
                if let Some(error) = self.keep(chunk, report)? {
                    return Err(error);
                }
                if report.is_over_budget(total, &self.options.url) {
                    report.summary.untried = total.saturating_sub(finished);
                    return Ok(());
                }
            }
            if self.mirror.pending_counts()?.conflicts == 0 {
                return Ok(());
            }
            self.make_room(report)?;
        }
        Ok(())
    }

    fn rehearse(&self, storer: &mut Storer, task: &Task, again: bool) -> Result<Outcome, Error> {
        match storer.prepare(task) {
            Ok((_, Prepared::Done(Outcome::Conflict))) if again => {
                if !self.sink.would_make_room(self.mirror, &task.pending.uri)? {
                    return Ok(Outcome::Failed(in_the_way()));
                }
            }
            Ok((_, Prepared::Done(outcome))) => return Ok(outcome),
            Ok((_, Prepared::Wanted { .. })) => {}
            Err(failure) => return Ok(Outcome::Failed(failure)),
        }
        Ok(self.would_store(storer, task)?.unwrap_or_else(Outcome::Failed))
    }

    fn would_store(
        &self,
        storer: &mut Storer,
        task: &Task,
    ) -> Result<Result<Outcome, Failure>, Error> {
        if let Some(robots) = self.rules.robots.as_ref().map(Arc::clone)
            && task.pending.body.is_none()
            && let Err(failure) = self.requests.run(robots.check(
                &self.requests.client,
                task.pending.href(),
                false,
            ))?
        {
            return Ok(Err(failure));
        }
        Ok(accept(&self.rules, &task.pending, !task.pending.digests.is_empty()).map(|mut more| {
            let mut outcome = storer.writer.rehearse(task, self.rules.epoch);
            if let Outcome::Stored { notices, .. } = &mut outcome {
                notices.append(&mut more);
            }
            outcome
        }))
    }
}
