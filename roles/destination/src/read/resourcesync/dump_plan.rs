//! The plan where a Source has dumps and no lists: their manifests are read as the lists [rs-core
//! §11, §13].

use super::cursor;
use super::dump::{DumpDocument, read_dump};
use super::keys;
use super::manifest::read_manifest;
use super::resource_list::keep_snapshot;
use crate::damage::check_kept;
use crate::error::{Error, ExitCode};
use crate::events::Mode;
use crate::package::archive::Package;
use crate::package::listing::{Dump, ListedPackage, Packaged, unusable};
use crate::plan::changes::{Followed, Seen};
use crate::plan::comparison::Baseline;
use crate::plan::planner::PlanContext;
use crate::read::sitemap::document::at_earliest;
use abreast_webtypes::Timestamp;
use std::fs::File;

/// A package with its file, where it could be fetched.
type Fetched = (ListedPackage, Option<File>);

/// Plans what makes the copy equal to a Resource Dump.
pub(crate) fn plan_resource_dump(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    has_changes: bool,
) -> Result<Baseline, Error> {
    run.report.begin_phase("reading");
    refuse_dry_run(run, url)?;
    let known =
        if has_changes || run.planner.options.baseline || run.planner.selection.has_changed() {
            None
        } else {
            run.planner.mirror.document(url)?
        };
    let Some(mut dump) = read_dump(run, url, Packaged::Snapshot, known.as_ref())? else {
        return Ok(Baseline { unchanged: true, whole: true, at: None });
    };
    run.report.summary.mode = Mode::Baseline;
    check_kept(run)?;
    let mut first_error = None;
    let had = fetch_packages(run, std::mem::take(&mut dump.packages), &mut first_error)?;
    run.planner.begin(run.report)?;
    let planned = read_resource_manifests(run, url, &dump, &had, first_error);
    run.requests.diagnostics.report(run.report);
    match planned {
        Ok(baseline) => {
            run.planner.commit()?;
            run.planner.mirror.clear_scratch()?;
            let packages = had
                .into_iter()
                .filter(|(_, file)| file.is_some())
                .map(|(package, _)| package)
                .collect();
            let packaged = Packaged::Snapshot;
            run.planner.made_from =
                Some(Dump { packages, packaged, at: baseline.at, date: None, is_plan: true });
            Ok(baseline)
        }
        Err(error) => {
            run.planner.abandon(run.report)?;
            Err(error)
        }
    }
}

fn refuse_dry_run(run: &PlanContext<'_, '_>, url: &str) -> Result<(), Error> {
    if !run.planner.options.dry_run {
        return Ok(());
    }
    let message =
        format!("{url} is all there is, and its packages must be fetched to see what is in them");
    Err(Error::new("dump.dry-run", ExitCode::Usage, message).with_help("run without `--dry-run`"))
}

/// Fetches packages. What cannot be fetched is reported and counted; the first such error is kept.
fn fetch_packages(
    run: &mut PlanContext<'_, '_>,
    packages: Vec<ListedPackage>,
    first_error: &mut Option<Error>,
) -> Result<Vec<Fetched>, Error> {
    let mut had = Vec::with_capacity(packages.len());
    for package in packages {
        run.requests.check_cancelled()?;
        let file = match run.planner.downloads.fetch(run.requests, &package) {
            Ok(file) => Some(file),
            Err(error) if matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io) => {
                return Err(error);
            }
            Err(error) => {
                package_failed(run, &package, error, first_error);
                None
            }
        };
        had.push((package, file));
    }
    Ok(had)
}

fn package_failed(
    run: &mut PlanContext<'_, '_>,
    package: &ListedPackage,
    error: Error,
    first_error: &mut Option<Error>,
) {
    if first_error.is_some() {
        run.report.list_failed(error.code(), &package.url, &error.to_string());
    } else {
        // Reported when it is known whether there is anything else.
        *first_error = Some(error);
    }
}

fn read_resource_manifests(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    dump: &DumpDocument,
    had: &[Fetched],
    mut first_error: Option<Error>,
) -> Result<Baseline, Error> {
    let mut comparison = run.begin_comparison(url)?;
    let diagnostics = run.requests.diagnostics.clone();
    let (mut read, mut at, mut partial) = (0, None, false);
    for (package, file) in had {
        let Some(file) = file else { continue };
        comparison.begin_document();
        let manifest = try_clone(file)
            .and_then(|file| Package::open(file, &|| run.requests.check_cancelled()))
            .map_err(|error| unusable(package, &error))
            .and_then(|archive| {
                read_manifest(
                    &archive,
                    &package.url,
                    Packaged::Snapshot,
                    &diagnostics,
                    &mut |_, listed| {
                        run.requests.check_cancelled()?;
                        comparison.entry(run, listed).map(drop)
                    },
                )
            });
        match manifest
            .and_then(|manifest| run.refuse_elsewhere(&package.url, &comparison).map(|()| manifest))
        {
            Ok(manifest) => {
                read += 1;
                partial |= run.report.left_out(&package.url, manifest.skipped);
                at = at.into_iter().chain(manifest.at).min();
            }
            Err(error) if matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io) => {
                return Err(error);
            }
            Err(error) => {
                run.planner.downloads.discard(package);
                package_failed(run, package, error, &mut first_error);
            }
        }
    }
    let whole = first_error.is_none() && !partial;
    if let Some(error) = first_error {
        if read == 0 {
            return Err(error);
        }
        run.report.list_failed(error.code(), url, &error.to_string());
    }
    let at = match at.or(dump.begins) {
        Some(at) => Some(run.not_after(url, "at", at, dump.date)),
        None => dump.date,
    };
    run.conclude(url, &mut comparison, whole)?;
    keep_snapshot(run.planner.mirror, whole, at)?;
    if let (Some(at), Some(_)) = (at, run.planner.mirror.meta(keys::CHANGE_DUMP)?) {
        // What changed since is read again from the Change Dump.
        run.planner.mirror.spare_newer(at.as_micros())?;
    }
    if whole {
        run.planner.mirror.set_document(url, &dump.validators)?;
    }
    Ok(Baseline { unchanged: false, whole, at })
}

/// Plans what changed since the cursor, out of a Change Dump. With `skip_gap`, a dump that begins
/// later is read from its beginning, and the gap is reported.
pub(crate) fn plan_change_dump(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    cursor: Timestamp,
    skip_gap: bool,
) -> Result<Followed, Error> {
    run.report.begin_phase("reading");
    refuse_dry_run(run, url)?;
    run.planner.since = Some(cursor);
    let known = run.planner.mirror.document(url)?;
    let Some(mut dump) = read_dump(run, url, Packaged::Changes, known.as_ref())? else {
        return Ok(Followed::Unchanged);
    };
    let earliest = dump
        .begins
        .into_iter()
        .chain(dump.packages.iter().filter_map(|package| package.from))
        .min();
    let mut cursor = cursor;
    if let Some(earliest) = earliest.filter(|earliest| *earliest > cursor) {
        let why = format!(
            "the Change Dump begins at {earliest}, after {cursor}, up to which the copy is known"
        );
        if !skip_gap {
            return Ok(Followed::Gap(why));
        }
        let message =
            format!("{why}; changes in between are known from the next Resource Dump only");
        run.report.notice("gap", url, &message);
        cursor = earliest;
        cursor::set(run.planner.mirror, Some(cursor))?;
    }
    let mut packages = std::mem::take(&mut dump.packages);
    packages.retain(|package| package.until.is_none_or(|until| until >= cursor));
    if packages.iter().all(|package| package.from.is_some()) {
        packages.sort_by_key(|package| package.from);
    }
    let mut first_error = None;
    let had = fetch_packages(run, packages, &mut first_error)?;
    if let Some(error) = first_error {
        // Without one of them changes would be missed.
        return Err(error);
    }
    run.planner.begin(run.report)?;
    let planned = read_change_manifests(run, url, &dump, &had, cursor);
    run.requests.diagnostics.report(run.report);
    if let Err(error) = planned {
        run.planner.abandon(run.report)?;
        return Err(error);
    }
    run.planner.commit()?;
    run.planner.mirror.clear_scratch()?;
    let mut packages: Vec<ListedPackage> = had.into_iter().map(|(package, _)| package).collect();
    // The newest first: without a digest an older one could be taken for what changed last.
    packages.reverse();
    let packaged = Packaged::Changes;
    run.planner.made_from = Some(Dump { packages, packaged, at: None, date: None, is_plan: true });
    Ok(Followed::Planned)
}

fn read_change_manifests(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    dump: &DumpDocument,
    had: &[Fetched],
    cursor: Timestamp,
) -> Result<(), Error> {
    run.planner.mirror.clear_scratch()?;
    let diagnostics = run.requests.diagnostics.clone();
    let mut seen = Seen::default();
    for (package, file) in had {
        let Some(file) = file else { continue };
        let archive = try_clone(file)
            .and_then(|file| Package::open(file, &|| run.requests.check_cancelled()))
            .map_err(|error| unusable(package, &error))?;
        let mut reading = run.reading_changes(&package.url);
        let manifest = read_manifest(
            &archive,
            &package.url,
            Packaged::Changes,
            &diagnostics,
            &mut |span, listed| {
                seen.begin_whole_list(span);
                run.note_change(listed, cursor, &mut seen, &mut reading)
            },
        )
        .inspect_err(|_| run.planner.downloads.discard(package))?;
        seen.newest =
            seen.newest.max(reading.newest.map(|newest| at_earliest(manifest.zoneless, newest)));
        seen.left_out |= run.report.left_out(&package.url, manifest.skipped);
    }
    run.plan_coming()?;
    run.keep_common(&mut seen)?;
    if seen.left_out {
        // What was left out may be any change: the next run reads all of them again.
        return Ok(());
    }
    if let Some(newest) = seen.newest.max(dump.until).filter(|newest| *newest >= cursor) {
        let newest = run.not_after(url, "datetime", newest, dump.date);
        cursor::set(run.planner.mirror, Some(newest.max(cursor)))?;
    }
    Ok(run.planner.mirror.set_document(url, &dump.validators)?)
}

fn try_clone(file: &File) -> Result<File, Error> {
    file.try_clone()
        .map_err(|cause| Error::new("io", ExitCode::Io, "cannot read a package").with_cause(cause))
}
