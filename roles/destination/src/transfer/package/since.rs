//! One package with all changes since a time, which a Source creates on request.
//!
//! The length of the package is not known before; but the changes were just read, and the package
//! contains their resources. It supplies planned bytes like any package. If it cannot be fetched,
//! the failure is reported, and the run continues without it.

use super::choose::{Wanted, package_seconds};
use super::supply::apply_package;
use crate::plan::planner::PlanContext;
use crate::read::driver::Driver;
use crate::report::error::{Error, ExitCode};
use crate::report::reporter::Reporter;
use crate::request::package::listing::{Dump, ListedPackage, Packaged};
use crate::transfer::Transfer;
use abreast_webtypes::Timestamp;

/// Maximum number of changes in one requested package: a manifest may not have more entries
/// [rs-core §7].
const CHANGES_MAX: u64 = 50_000;
/// Maximum length of the changes in one requested package, in bytes.
const BYTES_MAX: u64 = 1 << 30;

/// Extracts planned resources from one package with all changes since a time, if the Source creates
/// such packages and the package is cheaper than a request for each resource.
///
/// # Errors
/// Errors that end a run; other errors are reported.
pub(super) fn supply_since(
    transfer: &mut Transfer<'_>,
    reader: &mut Driver,
    run: &mut PlanContext<'_, '_>,
) -> Result<(), Error> {
    let Some(package) = choose(reader, run)? else { return Ok(()) };
    run.report.begin_phase("fetching");
    run.requests.check_cancelled()?;
    let (packages, packaged) = (Vec::new(), Packaged::Changes);
    let dump = Dump { packages, packaged, at: None, latest: None, is_plan: false };
    let fetched = run.planner.downloads.fetch(run.requests, &package);
    match fetched.and_then(|file| apply_package(transfer, reader, run, &dump, &package, file)) {
        Ok(()) => {}
        Err(error) if error.code() == "dump.space" => report_unusable(run.report, &package, &error),
        Err(error)
            if matches!(
                error.exit_code(),
                ExitCode::Cancelled | ExitCode::Io | ExitCode::Other
            ) =>
        {
            return Err(error);
        }
        Err(error) => {
            report_unusable(run.report, &package, &error);
            if matches!(error.code(), "http.status" | "http.making")
                && let Some(packages) = reader.packages()
            {
                packages.forget_since(run)?;
            }
        }
    }
    run.planner.downloads.discard(&package);
    Ok(())
}

fn report_unusable(report: &mut Reporter<'_>, package: &ListedPackage, error: &Error) {
    let message =
        format!("{error}\n  other packages are tried, or the resources are requested one by one");
    report.notice(error.code(), &package.url, &message);
}

/// The package, if it is cheaper than requests.
fn choose(
    reader: &mut Driver,
    run: &mut PlanContext<'_, '_>,
) -> Result<Option<ListedPackage>, Error> {
    if run.planner.since.is_none() || run.planner.made_from.is_some() {
        return Ok(None);
    }
    let due = run.planner.mirror.changes_due()?;
    let Some(oldest) = due.oldest else { return Ok(None) };
    let wanted = Wanted::new(run, due.resources, due.bytes);
    if !wanted.is_worth_packages() {
        return Ok(None);
    }
    let expected = run.planner.changes.or(wanted.resources, wanted.bytes);
    if expected.changes > CHANGES_MAX || expected.package_bytes() > BYTES_MAX {
        return Ok(None);
    }
    let made = expected.made();
    let package = ListedPackage { made: Some(made), ..ListedPackage::default() };
    let pace = run.requests.diagnostics.pace();
    let seconds = package_seconds(&package, Some(made.bytes), pace);
    tracing::debug!(?pace, package = seconds, "changes since a time in one package or not");
    if wanted.better(seconds, pace).is_none() {
        return Ok(None);
    }
    // Just before the first change.
    let Some(packages) = reader.packages() else { return Ok(None) };
    let url = packages.since(run, Timestamp::from_micros(oldest.saturating_sub(1)))?;
    Ok(url.map(|url| ListedPackage { url, ..package }))
}
