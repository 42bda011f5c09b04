//! Files of the copy that were lost or changed since they were written: detection, reports, and
//! plans to fetch them again.
//!
//! A comparison with the whole list reads every row anyway, and checks all files. A run that
//! follows changes checks only the files of changed resources, so that its cost is proportional to
//! the number of changes.

use crate::copy::state::state_of;
use crate::plan::planner::{PlanContext, Planner};
use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::report::reporter::Reporter;
use crate::report::sinks::Compared;
use crate::sink::Sink;
use crate::sink::kept::{
    Damage, DamageKind, ReadBack, distrusted, fetch_again, is_distrusted, plan_again,
};
use crate::sink::kind::kept_of;
use abreast_store::mirror::{Mirror, Pending, PendingAction, Row};
use abreast_webtypes::visible;

/// Maximum number of files that are moved to their plain paths in one run; the others wait for the
/// next comparison.
const MISNAMED_MAX: usize = 10_000;
/// Maximum number of losses that are reported individually in a run; the rest is counted.
const REPORTED_MAX: u64 = 100;

/// The message about a resource with its reserved name, and the help.
pub(crate) fn reserved_message(own: &str, reserved: &str) -> String {
    format!(
        "`{own}` is a folder here that no resource needs; the resource is stored as `{reserved}`\n  help: move the folder \
         away, then run `abreast sync` with `--baseline`"
    )
}

/// Reports that the stored data differs from the database, and requests a comparison of every row
/// in this run.
pub(crate) fn distrust(run: &mut PlanContext<'_, '_>, why: &str) {
    run.planner.copy.is_distrusted = true;
    let options = run.planner.options;
    let help = if options.sink.facts().lists_extras() {
        "`abreast audit` lists those as `extra`"
    } else {
        "to be sure of those, empty the target, then run with `--baseline --full`"
    };
    let message = format!(
        "{why}; all of the copy is compared, and what is missing or differs is fetched again; resources that were \
         deleted before may be there again\n  help: {help}"
    );
    run.report.notice("local.restored", &options.url, &message);
}

/// Compares every row with the stored data, once in a run: before a comparison with the whole list,
/// or at the request of the user if the Source does not have such a list.
pub(crate) fn check_kept(run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
    let (mirror, options) = (run.planner.mirror, run.planner.options);
    if std::mem::replace(&mut run.planner.copy.is_done, true) {
        return Ok(());
    }
    // For files, lengths and times are sufficient evidence.
    let has_files = options.sink.facts().compared() == Compared::Always;
    let full = options.full || run.planner.copy.is_distrusted && !has_files;
    let baseline = options.baseline || run.planner.copy.is_distrusted;
    let Some(mut kept) = whole_copy(mirror, options, baseline, full)? else { return Ok(()) };
    run.report.begin_phase("comparing");
    let is_begun = mirror.count_rows_up_to(1)? > 0;
    let is_damaged = |damage: &Damage| is_begun && damage.kind.is_loss();
    if let Some((file, damage)) = kept.file_damage()?.filter(|(_, damage)| is_damaged(damage)) {
        run.report.summary.damaged += 1;
        run.report.notice(
            damage.kind.code(),
            &file,
            &format!("{}; it is written again", damage.message),
        );
    }
    let mut checked = 0;
    mirror.each_batch(|rows| {
        run.requests.check_cancelled()?;
        let mut damaged = Vec::new();
        if full {
            let uris: Vec<&str> = rows.iter().map(|row| row.uri.as_str()).collect();
            kept.read_ahead(mirror, &uris)?;
        }
        for row in rows {
            if is_distrusted(row) && is_just_planned(mirror, &row.uri)? {
                continue;
            }
            match kept.damage(mirror, row, full)? {
                Some(damage) => damaged.push((row, damage)),
                None if row.leaf => {
                    report_reserved(mirror, run.planner.sink.as_deref(), run.report, &row.uri)?;
                }
                None => {}
            }
        }
        if !damaged.is_empty() {
            run.planner.begin(run.report)?;
            for (row, damage) in damaged {
                plan_damaged(run, row, &damage)?;
            }
            run.planner.commit()?;
        }
        checked += rows.len() as u64;
        run.report.status(checked, 0, 0);
        Ok::<(), Error>(())
    })?;
    if let Some((code, message)) = kept.remark() {
        run.report.notice(code, &options.url, &message);
    }
    let damaged = run.report.summary.damaged;
    if damaged > REPORTED_MAX {
        let message = format!("{} more are missing or altered here", damaged - REPORTED_MAX);
        run.report.notice("local.missing", &options.url, &message);
    }
    Ok(())
}

/// Whether a resource is planned and was not tried yet, so that its damage is already counted.
fn is_just_planned(mirror: &Mirror, uri: &str) -> Result<bool, Error> {
    Ok(mirror.task(uri)?.is_some_and(|task| task.pending.attempts == 0))
}

/// Checks the file of a resource in a Change List. If the file is damaged, the row becomes
/// unreliable.
pub(crate) fn check_one(run: &mut PlanContext<'_, '_>, row: &mut Row) -> Result<(), Error> {
    let (mirror, options) = (run.planner.mirror, run.planner.options);
    // Known damage is already planned and counted.
    if !options.sink.facts().is_folder() || is_distrusted(row) {
        return Ok(());
    }
    let kept = &mut run.planner.copy.kept;
    if kept.is_none() {
        *kept = kept_of(options, &state_of(options), mirror)?;
    }
    let Some(kept) = kept else { return Ok(()) };
    if let Some(damage) = kept.damage(mirror, row, false)?.filter(|damage| damage.kind.is_loss()) {
        plan_damaged(run, row, &damage)?;
        *row = distrusted(row);
    }
    Ok(())
}

/// Plans to restore the plain names of files, after all other actions.
pub(crate) fn plan_names(planner: &mut Planner<'_>) -> Result<(), Error> {
    std::mem::take(&mut planner.copy.misnamed)
        .iter()
        .try_for_each(|uri| plan_name(planner.mirror, uri))
}

/// Plans to check the name of a resource that is stored under the reserved name, unless another
/// action is planned for it.
pub(crate) fn plan_name(mirror: &Mirror, uri: &str) -> Result<(), Error> {
    if let Some(row) = mirror.row(uri)?.filter(|row| row.leaf)
        && mirror.task(uri)?.is_none()
    {
        mirror
            .put_pending(&Pending { action: PendingAction::Touch, ..fetch_again(mirror, &row)? })?;
    }
    Ok(())
}

/// Reports a resource under its reserved name, unless other resources are in the folder that has
/// its own.
pub(crate) fn report_reserved(
    mirror: &Mirror,
    sink: Option<&dyn Sink>,
    report: &mut Reporter<'_>,
    uri: &str,
) -> Result<(), Error> {
    let beneath = format!("{uri}/");
    let (mut rows, mut tasks) = (Vec::new(), Vec::new());
    rows.extend(mirror.row(&beneath)?);
    mirror.rows_after(&beneath, 1, &mut rows)?;
    tasks.extend(mirror.task(&beneath)?);
    mirror.pending_after(&beneath, 1, &mut tasks)?;
    let planned = tasks.iter().filter(|task| !task.pending.action.is_deletion());
    let mut others = rows.iter().map(|row| &row.uri).chain(planned.map(|task| &task.pending.uri));
    if others.any(|other| other.starts_with(&beneath)) {
        return Ok(());
    }
    report.reserved += 1;
    if report.reserved <= REPORTED_MAX {
        let shown = |leaf| sink.map_or_else(|| uri.to_owned(), |sink| sink.shown(uri, leaf));
        let message = reserved_message(&visible(&shown(false)), &visible(&shown(true)));
        report.notice("path.conflict", uri, &message);
    }
    Ok(())
}

/// Reports the number of resources under reserved names that were not reported individually.
pub(crate) fn report_more_reserved(report: &mut Reporter<'_>, source: &str) {
    if report.reserved > REPORTED_MAX {
        let message = format!(
            "more resources that are stored under reserved names: {}",
            report.reserved - REPORTED_MAX
        );
        report.notice("path.conflict", source, &message);
    }
}

/// The copy that a comparison reads back.
fn whole_copy(
    mirror: &Mirror,
    options: &SyncOptions,
    baseline: bool,
    full: bool,
) -> Result<Option<Box<dyn ReadBack>>, Error> {
    // The folder does not exist before the first run, and a dry run does not create it.
    let is_missing = options.dry_run && !options.folder.is_dir();
    if is_missing || !options.sink.facts().compared().is_due(baseline, full) {
        return Ok(None);
    }
    kept_of(options, &state_of(options), mirror)
}

fn plan_damaged(run: &mut PlanContext<'_, '_>, row: &Row, damage: &Damage) -> Result<(), Error> {
    let mirror = run.planner.mirror;
    match damage.kind {
        // Reported if the resource is planned for another reason.
        DamageKind::NoPlace | DamageKind::Unknown => return Ok(()),
        DamageKind::Name => {
            let misnamed = &mut run.planner.copy.misnamed;
            if misnamed.len() < MISNAMED_MAX {
                misnamed.push(row.uri.clone());
            }
            return Ok(());
        }
        // The comparison with the list sees that the file has another time than is listed.
        DamageKind::Touched(file_mtime) => {
            return Ok(mirror.put_row(&Row { file_mtime, ..row.clone() })?);
        }
        // The bytes decide when the row is compared.
        DamageKind::Time => {}
        DamageKind::Missing | DamageKind::Length | DamageKind::Digest => {
            run.report.summary.damaged += 1;
            if run.report.summary.damaged <= REPORTED_MAX {
                run.report.notice(
                    damage.kind.code(),
                    &row.uri,
                    &format!("{}; it is fetched again", damage.message),
                );
            }
        }
    }
    plan_again(mirror, row)
}
