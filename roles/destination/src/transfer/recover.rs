//! Recovery after a killed run, which may have stored or deleted resources without a record in the
//! database.
//!
//! Outcomes are committed in batches. Resources without a record are all items of the run's plan.
//! Before a new plan is made, each item is inspected and the database is updated. Otherwise, a
//! resource that the Source deletes meanwhile would remain permanently, and a resource that returns
//! unchanged would not be stored.

use crate::copy::{key, transaction};
use crate::plan::planner::PlanContext;
use crate::report::error::Error;
use crate::sink::Found;
use crate::transfer::created;
use crate::transfer::store::MEMORY_BYTES;
use abreast_store::mirror::{PendingAction, Task};
use std::sync::Arc;

/// Items inspected together.
const ITEMS: usize = 512;

/// Whether there may be a file under the temporary name of an item. A small new one is written
/// without a name.
fn may_be_begun(task: &Task) -> bool {
    let item = &task.pending;
    let is_small = item.length.is_some_and(|length| length <= MEMORY_BYTES as u64);
    item.action == PendingAction::Fetch && (!is_small || task.row.is_some())
}

/// Updates the database to the stored data, if the last run did not reach its end.
pub(crate) fn recover(run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
    let (mirror, options) = (run.planner.mirror, run.planner.options);
    let Some(sink) = run.planner.sink.clone().filter(|sink| sink.may_be_ahead()) else {
        return Ok(());
    };
    if mirror.meta(key::FINISHED)? == mirror.meta(key::EPOCH)? {
        return Ok(());
    }
    run.report.begin_phase("comparing");
    let mut writer = Arc::clone(&sink).writer();
    let (mut key, mut tasks) = (String::new(), Vec::new());
    let (mut inspected, mut found) = (0, 0_u64);
    loop {
        tasks.clear();
        mirror.pending_after(&key, ITEMS, &mut tasks)?;
        let Some(last) = tasks.last() else { break };
        key.clone_from(&last.pending.uri);
        run.requests.check_cancelled()?;
        for task in tasks.iter().filter(|task| !options.dry_run && may_be_begun(task)) {
            // An incomplete body with a note is continued, or removed when it is not needed any
            // more.
            if !sink.partials().has(&task.pending.uri) {
                sink.sweep(&task.pending.uri);
            }
        }
        if sink.leaves_nothing_of_failures() {
            // An item that is marked as failed was not tried again since: an item becomes due
            // before another attempt.
            let mut failed = Vec::new();
            for task in &tasks {
                failed.push(mirror.is_failed(&task.pending.uri)?);
            }
            let mut failed = failed.into_iter();
            tasks.retain(|_| !failed.next().unwrap_or_default());
        }
        let (answers, mut new) = (writer.inspect(&tasks), 0);
        transaction::begin(mirror, options.dry_run)?;
        for (task, answer) in tasks.iter().zip(answers) {
            match answer {
                // An item that cannot be inspected is reported when it is stored or deleted.
                Ok(Found::AsKept) | Err(_) => continue,
                Ok(Found::Gone) => mirror.delete_row(&task.pending.uri)?,
                Ok(Found::Other(row)) => {
                    new += u64::from(task.row.is_none());
                    mirror.put_row(&row)?;
                }
            }
            found += 1;
        }
        created::add(mirror, new)?;
        transaction::commit(mirror, options.dry_run)?;
        inspected += tasks.len() as u64;
        run.report.status(inspected, 0, 0);
    }
    if found > 0 {
        let message = format!(
            "the last run was interrupted; resources that it completed, or may have completed: {found}"
        );
        run.report.notice("state.recovered", &options.url, &message);
    }
    Ok(())
}
