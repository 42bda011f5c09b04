//! Dumps as replacements of lists, if a Source offers only dumps: the manifests in their packages
//! are read as lists [rs-core §11, §13].

use super::document::{Kind, Part, read_parts};
use super::dump::read_dump;
use super::listed::listed;
use super::manifest::read_manifest;
use super::resource_list::{is_of_answer, replay_from};
use super::spans::{Ends, Span, hole, older_index};
use crate::read::Snapshot;
use crate::read::position::Of;
use crate::read::sitemap::document::ZONE_MICROS;
use crate::read::sitemap::manifest::refusal;
use crate::read::walk::Walk;
use crate::report::error::{Error, ExitCode};
use crate::request::package::archive::Package;
use crate::request::package::download::Downloads;
use crate::request::package::listing::{Dump, ListedPackage, Packaged, unusable};
use crate::request::pieces::{Go, unasked};
use abreast_store::mirror::Document;
use abreast_webtypes::{Moment, W3cDatetime};
use std::fs::File;

/// # Errors
/// The run is a dry run.
fn refuse_dry_run(walk: &Walk<'_, '_>, url: &str) -> Result<(), Error> {
    if !walk.options.dry_run {
        return Ok(());
    }
    let message =
        format!("{url} is all there is, and its packages must be fetched to see what is in them");
    Err(Error::new("dump.dry-run", ExitCode::Usage, message).with_help("run without `--dry-run`"))
}

/// Whether an error concerns a single package, so that other packages can be read.
const fn is_of_package(error: &Error) -> bool {
    !matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io)
}

/// Passes on all resources of a Resource Dump.
pub(super) fn resource_dump(
    walk: &mut Walk<'_, '_>,
    url: &str,
    has_changes: bool,
) -> Result<Snapshot, Error> {
    let known = walk.known(url)?.filter(|_| !has_changes || walk.is_probe());
    let known = if is_of_answer(walk, url)? { None } else { known };
    let (requests, options) = (walk.requests, walk.options);
    let mut notice = |code: &str, url: &str, message: &str| walk.notice(code, url, message);
    let via = (requests, options);
    let Some(dump) = read_dump(via, url, Packaged::Snapshot, known.as_ref(), &mut notice)? else {
        return Ok(Snapshot { is_unchanged: true, ..Snapshot::default() });
    };
    let time = dump.begins.map(Moment::last);
    if walk.is_probe() && time.is_some() && time == walk.position().snapshot() {
        return Ok(Snapshot { is_unchanged: true, ..Snapshot::default() });
    }
    if dump.packages.iter().any(|package| package.manifest.is_none()) {
        refuse_dry_run(walk, url)?;
    }
    // What fills a new copy is received in any case.
    let are_needed = walk.plans() && !options.dry_run && walk.is_new_copy()?;
    walk.clock(&dump.answered);
    walk.begin_snapshot(url)?;
    let (mut times, mut read, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    walk.with_downloads(|walk, downloads| {
        for mut package in dump.packages {
            requests.check_cancelled()?;
            let beside = package.manifest.as_deref().filter(|_| !are_needed);
            let own = match beside.map(|url| read_manifest_at(walk, url)) {
                Some(Err(error)) if is_of_package(&error) && !options.dry_run => {
                    let message = format!("{error}\n  its package is read instead");
                    walk.notice(error.code(), &package.url, &message);
                    None
                }
                own => own,
            };
            let own = own.unwrap_or_else(|| {
                package.manifest = None;
                let file = downloads.fetch(requests, &package)?;
                read_resources(walk, &package, file)
            });
            match own {
                Ok(own) => {
                    times.extend(own);
                    read.push(package);
                }
                Err(error) if is_of_package(&error) => {
                    downloads.discard(&package);
                    failed.push((package, error));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })?;
    let named = read.len() + failed.len();
    for (package, error) in failed {
        if read.is_empty() {
            return Err(error);
        }
        walk.failed(&package.url, error, named)?;
    }
    times.sort_by_key(|at: &Moment| at.first());
    let (at, latest) = (times.first().copied(), times.last().copied());
    let mixed_until = latest.filter(|latest| at.is_some_and(|at| at.is_before(*latest)));
    // One with older packages comes from some cache, or they do: it may stay the same when they are not.
    let is_older = at.zip(dump.begins).is_some_and(|(at, stated)| at.is_before(stated));
    let validators = if is_older { Document::default() } else { dump.answered.validators.clone() };
    walk.keep_document(url, &validators);
    let stated = at.or(dump.begins);
    let changes_from = replay_from(walk, url, &dump.answered, stated, has_changes);
    let (packaged, at) = (Packaged::Snapshot, changes_from.map(Moment::first));
    Ok(Snapshot {
        lists_all: true,
        as_of: stated.or(changes_from.filter(|_| has_changes)),
        changes_from,
        mixed_until,
        made_from: Some(Dump { packages: read, packaged, at, latest: None, is_plan: true }),
        ..Snapshot::default()
    })
}

/// Passes on the resources of a package, according to the manifest next to it; returns its time.
fn read_manifest_at(walk: &mut Walk<'_, '_>, url: &str) -> Result<Option<Moment>, Error> {
    let (requests, mut at) = (walk.requests, None);
    walk.begin_document(url);
    let read = read_parts(requests, url, Kind::Manifest, None, &mut |part| {
        match part {
            Part::Begin(head, _) => at = head.at.map(W3cDatetime::moment),
            Part::Entry(head, entry) => walk.resource(&listed(url, head, entry), at, None)?,
            Part::Member(_) => return Err(refusal(url, "its manifest is an index")),
        }
        Ok(Go::On)
    })?;
    let read = read.ok_or_else(|| unasked(url))?;
    walk.end_document(url)?;
    walk.skipped(url, read.skipped)?;
    Ok(read.head.at.map(|at| read.moment(at)))
}

/// Passes on the resources of a package; returns its time.
fn read_resources(
    walk: &mut Walk<'_, '_>,
    package: &ListedPackage,
    file: File,
) -> Result<Option<Moment>, Error> {
    let requests = walk.requests;
    walk.begin_document(&package.url);
    let archive = Package::open(file, &|| requests.check_cancelled())
        .map_err(|error| unusable(package, &error))?;
    let mut at = None;
    let diagnostics = requests.diagnostics.clone();
    let manifest = read_manifest(
        &archive,
        &package.url,
        Packaged::Snapshot,
        &diagnostics,
        &mut |head, listed| {
            requests.check_cancelled()?;
            at = head.at.map(W3cDatetime::moment);
            walk.resource(listed, at, None)
        },
    )?;
    walk.end_document(&package.url)?;
    walk.skipped(&package.url, manifest.skipped)?;
    let at = at.or(manifest.at.map(Moment::exact));
    Ok(at.map(|at| if manifest.zoneless { at.widened(ZONE_MICROS) } else { at }))
}

/// Passes on the changes of a Change Dump since the position of the walk. `now_named` reads the
/// Capability List again: a Source that closes a dump may name the next one there only.
pub(super) fn change_dump(
    walk: &mut Walk<'_, '_>,
    url: &str,
    now_named: &mut dyn FnMut() -> Result<Option<String>, Error>,
) -> Result<(), Error> {
    refuse_dry_run(walk, url)?;
    let (known, since) = (walk.known(url)?, walk.since());
    let (requests, options) = (walk.requests, walk.options);
    let mut notice = |code: &str, url: &str, message: &str| walk.notice(code, url, message);
    let via = (requests, options);
    let Some(dump) = read_dump(via, url, Packaged::Changes, known.as_ref(), &mut notice)? else {
        walk.walked.is_unchanged = true;
        return Ok(());
    };
    walk.clock(&dump.answered);
    let (mut packages, mut ends) = (dump.packages, dump.ends);
    let (mut until, mut begins, is_closed) = (dump.until, dump.begins, dump.until.is_some());
    if is_closed && let Some(next) = now_named()?.filter(|next| next != url) {
        let mut notice = |code: &str, url: &str, message: &str| walk.notice(code, url, message);
        if let Some(next) = read_dump(via, &next, Packaged::Changes, None, &mut notice)? {
            packages.extend(next.packages);
            until = next.until;
            begins = begins.into_iter().chain(next.begins).min_by_key(|from| from.first());
        }
    }
    walk.sort_by_span(&mut packages, |package| {
        (package.from.map(Moment::first), package.until.map(Moment::first))
    });
    let of_packages = packages.iter().filter_map(|package| package.from);
    let earliest = begins.take().into_iter().chain(of_packages).min_by_key(|from| from.first());
    if let Some(earliest) = earliest {
        walk.reaches_back_to(earliest);
        let is_late = since.is_some_and(|since| since.is_before(earliest));
        if is_late && walk.is_conditional() {
            // A gap: all is compared, and the packages are of no use.
            return Ok(());
        }
    }
    let named_from = packages.first().and_then(|package| package.from).or(earliest);
    let (passed, mut packages): (Vec<_>, Vec<_>) = packages.into_iter().partition(|package| {
        package.until.zip(since).is_some_and(|(until, since)| until.is_before(since))
    });
    // Changes in skipped packages are known, and need not be found again.
    let passed_until = passed.iter().filter_map(|package| package.until).map(Moment::last).max();
    walk.walked.end = packages
        .iter()
        .filter_map(|package| package.from.map(Moment::first))
        .min()
        .max(passed_until);
    walk.with_downloads(|walk, downloads| read_changes(walk, downloads, &mut packages, &mut ends))?;
    let spans = passed.iter().chain(&packages).filter_map(|package| {
        Some(Span { url: &package.url, from: package.from?, until: package.until })
    });
    walk.walked.hole = hole(spans.collect(), since);
    let first = packages.first().filter(|_| passed.is_empty()).and_then(|package| package.from);
    let is_late = |from: &Moment| since.is_some_and(|since| since.is_before(*from));
    let is_older = first.zip(named_from).is_some_and(|(own, named)| named.is_before(own));
    let first = first.filter(is_late).filter(|_| is_older);
    walk.walked.hole = walk.walked.hole.take().or_else(|| first.map(older_index));
    // Packages with an earlier end lack changes that the dump should contain.
    let all = passed.iter().chain(&packages);
    let shown = all.filter_map(|package| package.until).max_by_key(|it| it.last());
    // For many packages, only the dump contains the end.
    let is_short = until.zip(shown).is_some_and(|(until, shown)| shown.is_before(until));
    ends.are_short = is_short && walk.marks().are_lost(walk.walked.end);
    ends.judge(walk, false);
    let until = until.map(|until| shown.filter(|shown| shown.is_before(until)).unwrap_or(until));
    if let Some(until) = until {
        walk.states_end(until);
        walk.walked.went_back = went_back(walk, until);
    }
    if let Some(until) = until.filter(|until| !walk.is_future(until.first())) {
        walk.covers_until(until);
    }
    // A closed dump does not change, so the next dump must be searched for.
    let validators = if is_closed { Document::default() } else { dump.answered.validators };
    walk.keep_document(url, &validators);
    // The newest first: if digests are missing, an older version could be taken for the last one.
    packages.reverse();
    let packaged = Packaged::Changes;
    walk.walked.made_from =
        Some(Dump { packages, packaged, at: None, latest: None, is_plan: true });
    Ok(())
}

/// Whether a closed dump ends before what documents of changes listed until now.
fn went_back(walk: &Walk<'_, '_>, until: Moment) -> Option<String> {
    let position = walk.position();
    let is_of_documents = position.of() == Of::Change && position.announced().is_none();
    let since = walk.since().filter(|_| is_of_documents && !walk.walked.is_unstable);
    since.filter(|since| until.is_before(*since)).map(|since| {
        let (until, since) = (until.first(), since.first());
        format!(
            "the changes end at {until}, and were listed until {since} before: the Source went back"
        )
    })
}

fn read_changes(
    walk: &mut Walk<'_, '_>,
    downloads: &Downloads,
    packages: &mut [ListedPackage],
    ends: &mut Ends,
) -> Result<(), Error> {
    let requests = walk.requests;
    // All packages are downloaded first, because changes must not be missed.
    let mut files = Vec::with_capacity(packages.len());
    for package in &*packages {
        requests.check_cancelled()?;
        files.push(downloads.fetch(requests, package)?);
    }
    for (package, file) in packages.iter_mut().zip(files) {
        let archive = Package::open(file, &|| requests.check_cancelled())
            .map_err(|error| unusable(package, &error))?;
        let (diagnostics, mut has_begun) = (requests.diagnostics.clone(), false);
        let manifest = read_manifest(
            &archive,
            &package.url,
            Packaged::Changes,
            &diagnostics,
            &mut |head, listed| {
                if !std::mem::replace(&mut has_begun, true) {
                    let moment = |time: Option<W3cDatetime>| time.map(W3cDatetime::moment);
                    walk.begin_changes(&package.url, moment(head.from), moment(head.until));
                }
                walk.change(listed)
            },
        )
        .inspect_err(|_| downloads.discard(package))?;
        if manifest.zoneless {
            walk.walked.widen = ZONE_MICROS;
        }
        walk.skipped(&package.url, manifest.skipped)?;
        ends.read(package.until, manifest.until);
        // The interval in a package has precedence, since the dump may be older.
        package.from = manifest.from.or(package.from);
        package.until = manifest.until.or(package.until);
    }
    Ok(())
}
