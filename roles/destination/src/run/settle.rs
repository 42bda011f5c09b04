//! Durability of the last run's files: a later run makes files durable, or reads them again after a
//! crash of the machine.

use crate::copy::{key, transaction};
use crate::plan::planner::PlanContext;
use crate::report::clock::now_seconds;
use crate::report::error::Error;
use crate::sink::folder::FolderKept;
use crate::sink::kept::{ReadBack as _, plan_again};
use abreast_folder::Folder;
use std::time::Duration;

/// Duration after which files of an earlier run are made durable by the next run.
const SETTLE_AFTER: Duration = Duration::from_secs(60);

/// Makes the files of the last run durable. If the machine was restarted since, checks whether the
/// files are intact.
pub(crate) fn settle(run: &mut PlanContext<'_, '_>, folder: &Folder) -> Result<(), Error> {
    let (mirror, is_dry_run) = (run.planner.mirror, run.planner.options.dry_run);
    let Some(written) = mirror.meta(key::WRITTEN)? else { return Ok(()) };
    let epoch = mirror.meta(key::EPOCH)?.unwrap_or_default();
    if mirror.meta(key::SETTLED)?.as_deref() == Some(&epoch) {
        return Ok(());
    }
    let (seconds, life) = written.split_once(' ').unwrap_or(("0", ""));
    let now = now_seconds();
    let age = now.abs_diff(seconds.parse().unwrap_or(0));
    if life == boot_id() {
        if age >= SETTLE_AFTER.as_secs() && !is_dry_run {
            folder.root().sync_filesystem()?;
            mirror.set_meta(key::SETTLED, Some(&epoch))?;
        }
        return Ok(());
    }
    recheck(run, folder, &epoch)
}

/// After a crash of the machine: files not known to be durable are read again; bad ones are fetched
/// again.
fn recheck(run: &mut PlanContext<'_, '_>, folder: &Folder, epoch: &str) -> Result<(), Error> {
    let (mirror, options) = (run.planner.mirror, run.planner.options);
    let settled = mirror.meta(key::SETTLED)?.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    let Some(mut kept) = FolderKept::open(&options.folder, mirror)? else { return Ok(()) };
    run.report.begin_phase("comparing");
    let (mut checked, mut bad) = (0_u64, 0_u64);
    mirror.each_batch(|rows| {
        transaction::begin(mirror, options.dry_run)?;
        for row in rows.iter().filter(|row| row.epoch > settled) {
            checked += 1;
            if kept.damage(mirror, row, true)?.is_some_and(|damage| damage.kind.is_loss()) {
                bad += 1;
                plan_again(mirror, row)?;
            }
        }
        transaction::commit(mirror, options.dry_run)?;
        run.requests.check_cancelled()?;
        run.report.status(checked, 0, 0);
        Ok::<(), Error>(())
    })?;
    if checked > 0 {
        let message = format!(
            "files not known to be safe when the machine was restarted: {checked}; fetched again: {bad}"
        );
        run.report.notice("settle.recheck", &options.url, &message);
    }
    if !options.dry_run {
        folder.root().sync_filesystem()?;
    }
    mirror.set_meta(key::SETTLED, Some(epoch))?;
    Ok(())
}

/// Changes with each start of the machine; empty where the system does not provide it.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The time and the identifier of the machine's start, which a run records when it writes files.
pub(crate) fn written_text() -> String {
    format!("{} {}", now_seconds(), boot_id())
}
