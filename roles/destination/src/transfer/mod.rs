//! The transfer: carries out a plan. It fetches and stores resources, resolves name conflicts, then
//! deletes.
//!
//! | file | subject |
//! |---|---|
//! | `fetches.rs` | distribution of the items to fetch |
//! | `work_queue.rs`, `workers.rs` | the threads that fetch, and their work |
//! | `warm_up.rs` | their first connections |
//! | `fetch/` | one resource: from its URL, a mirror or a patch |
//! | `store.rs` | verification of a body, and storage in the sink |
//! | `keep.rs` | outcomes: written to the database, counted and reported |
//! | `deletes.rs` | deletions, within the limits of the guard |
//! | `guard.rs`, `created.rs` | the deletion guard, and a number that it needs |
//! | `rehearse.rs` | a dry run, as a replacement of these steps |
//! | `recover.rs` | recovery after a killed run |

mod carry_out;
pub(crate) mod created;
mod deletes;
pub(crate) mod fetch;
mod fetches;
pub(crate) mod guard;
pub(crate) mod history;
mod keep;
pub(crate) mod mirror_hosts;
pub(crate) mod package;
pub(crate) mod recover;
mod rehearse;
pub(crate) mod repetitions;
pub(crate) mod rules;
#[cfg(test)]
mod settling;
pub(crate) mod store;
pub(crate) mod warm_up;
pub(crate) mod work_queue;
pub(crate) mod workers;

use crate::report::error::Error;
use crate::report::failure::Failure;
use crate::report::options::SyncOptions;
use crate::report::reporter::{Reporter, with_line};
use crate::request::requests::Requests;
use crate::sink::Sink;
use crate::transfer::rules::Rules;
use crate::transfer::warm_up::WarmUp;
use crate::transfer::workers::DoneChunk;
use abreast_net::Shared;
use abreast_store::mirror::{Mirror, Task};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of failures whose reports are postponed; further failures are reported at once.
const FAILURES_MAX: usize = 10_000;

/// Carries out the plan of a run.
pub(crate) struct Transfer<'a> {
    pub(crate) options: &'a SyncOptions,
    pub(crate) mirror: &'a Mirror,
    pub(crate) requests: &'a Requests<'a>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) sink: Arc<dyn Sink>,
    warm_up: WarmUp,
    /// Failures that are not reported yet.
    failures: Vec<Failed>,
    /// Chunks since the last commit, if the sink settles items.
    unsettled: Vec<DoneChunk>,
    /// The reasons why items could not be settled, by URI, until their outcomes are replaced.
    unsettled_failures: HashMap<String, Failure>,
}

/// A failure that is not reported yet, because the Source may have changed the resource meanwhile.
#[derive(Debug)]
struct Failed {
    uri: String,
    failure: Failure,
    /// Whether the resource also failed in an earlier run.
    again: bool,
}

impl<'a> Transfer<'a> {
    pub(crate) fn new(
        (options, mirror): (&'a SyncOptions, &'a Mirror),
        requests: &'a Requests<'a>,
        shared: &Arc<Shared>,
        rules: &Arc<Rules>,
        sink: Arc<dyn Sink>,
        warm_up: WarmUp,
    ) -> Self {
        let (shared, rules) = (Arc::clone(shared), Arc::clone(rules));
        Self {
            options,
            mirror,
            requests,
            shared,
            rules,
            sink,
            warm_up,
            failures: Vec::new(),
            unsettled: Vec::new(),
            unsettled_failures: HashMap::new(),
        }
    }

    /// Reports the final failures.
    pub(crate) fn report_failures(&mut self, report: &Reporter<'_>) {
        for failed in self.failures.drain(..) {
            self.sink.sweep_folders(&failed.uri);
            report.problem(failed.failure.code, &failed.uri, &failed.failure.message);
        }
    }

    /// Counts a failure, and stores the failure until it is known whether it is final.
    fn failed(&mut self, task: &Task, mut failure: Failure, report: &mut Reporter<'_>) {
        // A resource without a path is not requested.
        let is_requested = !failure.code.starts_with("path.");
        if is_requested && task.pending.href() != task.pending.uri {
            let address = format!("requested at {}", task.pending.href());
            failure.message = with_line(&failure.message, &address);
        }
        let again = task.pending.attempts > 0;
        if failure.refused {
            report.summary.skipped += 1;
        } else {
            report.summary.failed += 1;
        }
        report.new_failures += u64::from(!again);
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(Failed { uri: task.pending.uri.clone(), failure, again });
        } else {
            report.problem(failure.code, &task.pending.uri, &failure.message);
        }
    }

    /// Withdraws failures of resources that another plan has superseded.
    fn withdraw(&mut self, report: &mut Reporter<'_>) -> Result<(), Error> {
        let mut standing = Vec::with_capacity(self.failures.len());
        for failed in self.failures.drain(..) {
            if self.mirror.is_failed(&failed.uri)? {
                standing.push(failed);
                continue;
            }
            let summary = &mut report.summary;
            let count =
                if failed.failure.refused { &mut summary.skipped } else { &mut summary.failed };
            *count = count.saturating_sub(1);
            report.new_failures = report.new_failures.saturating_sub(u64::from(!failed.again));
        }
        self.failures = standing;
        Ok(())
    }

    /// Whether a limit of bytes or time was reached, which is reported.
    fn over_limit(&self, report: &Reporter<'_>) -> bool {
        let allowance = &self.requests.allowance;
        let Some((code, mut message)) = allowance.reached().or_else(|| allowance.lacking()) else {
            return false;
        };
        if !message.contains("help: ") {
            message.push_str("\n  help: the next run continues");
        }
        report.problem(code, &self.options.url, &message);
        true
    }
}

/// Removes parts of resources that the plan no longer has. A part of a failed resource, or of a resource that a limit of
/// bytes or time cut off, remains for the next run.
pub(crate) fn sweep_partials(mirror: &Mirror, sink: &dyn Sink) -> Result<(), Error> {
    for note in sink.partials().all() {
        if mirror.new_task(&note.uri)?.is_none() {
            sink.sweep(&note.uri);
            sink.partials().forget(&note.uri);
        }
    }
    Ok(())
}
