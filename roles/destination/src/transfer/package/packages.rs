//! The packages of a run, in order.

use super::choose::choose;
use super::since::supply_since;
use super::supply::apply_package;
use crate::plan::planner::PlanContext;
use crate::read::driver::Driver;
use crate::report::error::{Error, ExitCode};
use crate::report::meters::short_name;
use crate::request::limits::is_over;
use crate::request::package::listing::Dump;
use crate::transfer::Transfer;

/// Extracts planned resources from packages if that is cheaper than a request for each; the
/// remaining resources are requested later.
pub(crate) fn supply(
    transfer: &mut Transfer<'_>,
    reader: &mut Driver,
    run: &mut PlanContext<'_, '_>,
) -> Result<(), Error> {
    supply_since(transfer, reader, run)?;
    let counts = transfer.mirror.pending_counts()?;
    let dump = if counts.fetches == 0 { None } else { choose(reader, run, counts)? };
    if let Some(dump) = dump {
        supply_from(transfer, reader, run, dump)?;
    }
    // The next run resumes a package that a limit of bytes or time cut off.
    if run.requests.allowance.reached().is_none() {
        run.planner.downloads.sweep();
    }
    Ok(())
}

fn supply_from(
    transfer: &mut Transfer<'_>,
    reader: &mut Driver,
    run: &mut PlanContext<'_, '_>,
    mut dump: Dump,
) -> Result<(), Error> {
    run.report.begin_phase("fetching");
    for package in &std::mem::take(&mut dump.packages) {
        run.requests.check_cancelled()?;
        if transfer.mirror.pending_counts()?.fetches == 0 || run.report.summary.budget_spent {
            break;
        }
        let named = run.report.meter.item(|| short_name(&package.url));
        let fetch = || run.planner.downloads.fetch(run.requests, package);
        let fetched = if dump.is_plan { fetch() } else { run.requests.briefly(fetch) };
        drop(named);
        let Err(error) =
            fetched.and_then(|file| apply_package(transfer, reader, run, &dump, package, file))
        else {
            run.planner.downloads.discard(package);
            continue;
        };
        if is_over(&error) {
            // The transfer reports that, and ends.
            break;
        }
        let is_full = error.code() == "dump.space";
        if !is_full
            && matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io | ExitCode::Other)
        {
            return Err(error);
        }
        let message = format!("{error}\n  resources are asked for one by one");
        run.report.notice(error.code(), &package.url, &message);
        dump.passed_over();
        if is_full || error.code() == "http.making" {
            break;
        }
        run.planner.downloads.discard(package);
    }
    Ok(())
}
