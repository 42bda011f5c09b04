//! The audit: a comparison of the copy with the list of the Source, without changes.

mod kept;
mod listing;

use self::listing::{Listing, stop};
use crate::copy::common_base::CommonBase;
use crate::copy::last_audit::LastAudit;
use crate::copy::path_map::{Form, PathMap, STATE_FOLDER, TEMPORARY_PREFIX};
use crate::copy::place::{Place, shown};
use crate::copy::probe::FileSystem;
use crate::copy::state::{check_one_set, known_state_folder, open_known, state_of};
use crate::plan::damage::reserved_message;
use crate::plan::select::{NOTHING_WANTED, Selection};
use crate::plan::skolem;
use crate::read::choice::Choice;
use crate::read::driver::Driver;
use crate::read::expectation::{Expectation, OneSide};
use crate::read::renamed;
use crate::read::selecting::common_base;
use crate::read::{Start, check_url};
use crate::report::audited::AuditReport;
use crate::report::error::{Error, ExitCode};
use crate::report::events::{Event, Item, ItemAction, Observer, Problem, Status};
use crate::report::lasting::Lasting;
use crate::report::meters::{short_name, with_meter};
use crate::report::options::{AuditOptions, SyncOptions};
use crate::request::requests::Requests;
use crate::request::verify::{Verdict, hash_file, judge};
use crate::run::audit::kept::Kept;
use crate::run::sync::base_map;
use crate::sink::folder::FolderKept;
use crate::sink::kept::{ReadBack as _, is_distrusted};
use crate::sink::kind::kept_of;
use abreast_core::filter::{Decision, Subject};
use abreast_folder::{Folder, Kind, Stat};
use abreast_net::Shared;
use abreast_store::mirror::{Expected, ExpectedRow, Mirror, Pending};
use abreast_webtypes::Digests;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Maximum number of files of a folder that are sorted by name before they are reported.
const SORTED_MAX: usize = 10_000;

/// Compares a folder with a Source, and reports each difference.
///
/// # Errors
/// The lists cannot be read, or the folder is missing.
pub fn audit(
    options: &AuditOptions,
    observer: &dyn Observer,
    cancel: &AtomicBool,
) -> Result<AuditReport, Error> {
    audit_with(options, observer, cancel, &mut Choice::default())
}

pub(crate) fn audit_with(
    options: &AuditOptions,
    observer: &dyn Observer,
    cancel: &AtomicBool,
    choice: &mut Choice,
) -> Result<AuditReport, Error> {
    let began = Instant::now();
    let sync = &options.sync;
    check_url(&sync.url)?;
    check_one_set(sync)?;
    let folder = Folder::open(&sync.folder).map_err(|error| not_there(&sync.folder, error))?;
    let shared = Shared::new(with_meter(sync.net_options(), &observer.meter()));
    let requests = Requests::new(sync, cancel, &shared)?;
    observer.meter().begin("reading");
    let current = match open_known(&sync.folder, sync.state.as_deref())? {
        Some(mirror) => {
            let current = renamed::current_address((&requests, sync), &mirror)?;
            requests.moves.borrow_mut().known = renamed::known_addresses(&mirror)?;
            current
        }
        None => None,
    };
    let current = current
        .map(|url| AuditOptions { sync: SyncOptions { url, ..sync.clone() }, ..options.clone() });
    let options = current.as_ref().unwrap_or(options);
    let sync = &options.sync;
    let (reader, start) = find_source(choice, &requests, options, observer)
        .map_err(|error| renamed::explain((&requests, sync), None, error))?;
    let expected = Expected::new()?;
    let mut selection = selection_for(options, &requests, reader, &start)?;
    let excluded = Expected::new()?;
    let mut listing = Listing {
        expected: &expected,
        selection: &mut selection,
        excluded: &excluded,
        common: CommonBase::default(),
        item: Pending::default(),
        observer,
        meter: observer.meter(),
        requests: &requests,
        cancel,
    };
    let mirror = open_known(&sync.folder, sync.state.as_deref())?;
    let expectation = reader
        .expect(&requests, sync, mirror.as_ref(), &mut listing)
        .map_err(|error| renamed::explain((&requests, sync), mirror.as_ref(), error))?;
    let expectation = &expectation;
    requests.diagnostics.each(&mut |code, uri, message| {
        observer.event(&Event::Notice(Problem { code, uri, message }));
    });
    let common = listing.common.of_most(&start.first);
    report_nothing(&start.first, &expected, &excluded, &selection, observer)?;
    let mut report = if sync.sink.facts().is_folder() {
        compare_folder(
            &folder,
            options,
            (&expected, &excluded, selection),
            observer,
            cancel,
            (&start, common, expectation),
        )?
    } else {
        sync.sink.facts().check_audit(options.full)?;
        let mirror = known_state(options)?;
        let reader = kept_of(sync, &state_of(sync), &mirror)?.ok_or_else(|| no_copy(options))?;
        Kept { mirror, reader, full: options.full, observer, cancel, expectation }
            .compare(&expected)?
    };
    if let Some(mirror) = mirror {
        let lasting = Lasting::read(&mirror)?;
        report.held = mirror.count_deletes()?;
        report.held_since = lasting.held.map(|held| held.since);
        report.failing_since = lasting.failing.map(|failing| failing.since);
    }
    report.requests = shared.counters().requests;
    report.seconds = began.elapsed().as_secs_f64();
    report.partial = expectation.is_lacking;
    report.exit_code = match report.updated + report.missing + report.extra {
        0 if report.partial => ExitCode::Partial.number(),
        different => u8::from(different > 0),
    };
    if let Some(state) = known_state_folder(&sync.folder, sync.state.as_deref()) {
        LastAudit::keep(&state, &report);
    }
    observer.event(&Event::Audit(&report));
    Ok(report)
}

/// The error for a folder in the command that does not exist.
fn not_there(folder: &Path, error: abreast_folder::Error) -> Error {
    if !matches!(
        error.kind(),
        abreast_folder::ErrorKind::NotFound | abreast_folder::ErrorKind::NotFolder
    ) {
        return error.into();
    }
    Error::new(
        "folder.missing",
        ExitCode::Usage,
        format!("there is no folder {}", folder.display()),
    )
    .with_help("name the folder of a copy, or make one with `abreast sync`")
    .with_cause(error)
}

/// The set that the copy is of, found again from the user's address.
fn find_source<'c>(
    choice: &'c mut Choice,
    requests: &Requests<'_>,
    options: &AuditOptions,
    observer: &dyn Observer,
) -> Result<(&'c mut Driver, Start), Error> {
    let mirror = open_known(&options.sync.folder, options.sync.state.as_deref())?;
    if let Some(mirror) = &mirror {
        requests.skolems_are_resources.set(skolem::are_resources(mirror)?);
    }
    let reader = choice.reader(requests, &options.sync, mirror.as_ref())?;
    let start = reader.find_read_only(requests, &options.sync, mirror.as_ref(), observer)?;
    Ok((reader, start))
}

/// The user's filters, with the base that their paths need.
fn selection_for(
    options: &AuditOptions,
    requests: &Requests<'_>,
    reader: &mut Driver,
    start: &Start,
) -> Result<Selection, Error> {
    if !options.sync.filter.needs_paths() {
        return Ok(Selection::new(&options.sync));
    }
    let known = options.sync.base.clone().or(known_base(options)?.0).or(start.uri_space.clone());
    let base = match known {
        Some(base) => Some(base),
        None => common_base(reader, requests, start, &options.sync)?,
    };
    Ok(Selection::with_base(&options.sync, base.as_deref()))
}

/// Reports that the filters exclude all that is listed.
fn report_nothing(
    list: &str,
    expected: &Expected,
    excluded: &Expected,
    selection: &Selection,
    observer: &dyn Observer,
) -> Result<(), Error> {
    let has_any = |rows: &Expected| {
        let mut first = Vec::new();
        rows.after("", 1, &mut first).map(|()| !first.is_empty())
    };
    if !has_any(expected)?
        && let Some(message) = selection.nothing_wanted(has_any(excluded)?)
    {
        let message = &*message;
        observer.event(&Event::Notice(Problem { code: NOTHING_WANTED, uri: list, message }));
    }
    Ok(())
}

/// Compares files with the expected resources. The base is the base in the options, the copy's own
/// base, or the first usable guess.
fn compare_folder(
    folder: &Folder,
    options: &AuditOptions,
    (expected, excluded, selection): (&Expected, &Expected, Selection),
    observer: &dyn Observer,
    cancel: &AtomicBool,
    (start, common, expectation): (&Start, Option<String>, &Expectation),
) -> Result<AuditReport, Error> {
    let (base, system) = known_base(options)?;
    let system = system.unwrap_or(FileSystem::with_rules(crate::NameRules::default()));
    let map = base_map(options.sync.base.clone().or(base), start, common, system.rules)?;
    let mirror = open_known(&options.sync.folder, options.sync.state.as_deref())?;
    let kept = mirror.as_ref().map(|mirror| FolderKept::open(&options.sync.folder, mirror));
    let kept = kept.transpose()?.flatten();
    let mut comparison = Comparison {
        folder,
        written: mirror.zip(kept),
        map: &map,
        excluded,
        selection,
        expectation,
        system,
        full: options.full,
        observer,
        cancel,
        report: AuditReport { full: options.full, ..AuditReport::default() },
    };
    comparison.listed(expected)?;
    comparison.present(expected)?;
    Ok(comparison.report)
}

/// The database of a copy that cannot be compared without its database.
fn known_state(options: &AuditOptions) -> Result<Mirror, Error> {
    open_known(&options.sync.folder, options.sync.state.as_deref())?.ok_or_else(|| no_copy(options))
}

fn no_copy(options: &AuditOptions) -> Error {
    let message = format!("there is no copy in {}", options.sync.folder.display());
    Error::new("folder.state", ExitCode::Usage, message).with_help("run `abreast sync` first")
}

/// Base and file system in the copy's database, if there is one.
fn known_base(options: &AuditOptions) -> Result<(Option<String>, Option<FileSystem>), Error> {
    let known = open_known(&options.sync.folder, options.sync.state.as_deref())?;
    let Some(mirror) = known else { return Ok((None, None)) };
    let system =
        mirror.meta(crate::copy::key::FILE_SYSTEM)?.as_deref().and_then(FileSystem::from_text);
    Ok((mirror.meta(crate::copy::key::BASE)?, system))
}

/// Compares and reports.
struct Comparison<'a> {
    folder: &'a Folder,
    /// The files that the copy wrote, if its database exists.
    written: Option<(Mirror, FolderKept)>,
    excluded: &'a Expected,
    selection: Selection,
    expectation: &'a Expectation,
    map: &'a PathMap,
    system: FileSystem,
    full: bool,
    observer: &'a dyn Observer,
    cancel: &'a AtomicBool,
    report: AuditReport,
}

impl Comparison<'_> {
    fn listed(&mut self, expected: &Expected) -> Result<(), Error> {
        let (began, meter) = (Instant::now(), self.observer.meter());
        meter.begin("comparing");
        if meter.is_listening() {
            meter.expect(expected.count()?, 0);
        }
        expected.each_batch(|rows| {
            for row in rows {
                let _named = self.full.then(|| meter.item(|| short_name(&row.uri)));
                self.compare(row, expected)?;
                meter.add(1, 0);
            }
            stop(self.cancel)?;
            let done = self.report.same + self.report.updated + self.report.missing;
            let seconds = began.elapsed().as_secs_f64();
            self.observer.event(&Event::Status(Status {
                phase: "comparing",
                done,
                seconds,
                ..Status::default()
            }));
            Ok(())
        })
    }

    fn compare(&mut self, row: &ExpectedRow, expected: &Expected) -> Result<(), Error> {
        let Some((place, found)) = find(self.folder, self.map, &row.uri) else {
            if let Some((mirror, _)) = &self.written
                && self.expectation.missing(mirror, row)? == OneSide::Unknown
            {
                self.report.unknown += 1;
                return Ok(());
            }
            self.report.missing += 1;
            // A URI without a path is shown as it is.
            let mut path = Vec::new();
            if self.map.path_into(&row.uri, Form::Plain, &mut path).is_err() {
                row.uri.as_bytes().clone_into(&mut path);
            }
            self.report_item((&row.uri, row.href.as_deref()), &path, ItemAction::Missing);
            return Ok(());
        };
        let verdict = match self.written(row, false)? {
            Some(verdict) if verdict == Verdict::Mismatch || !self.full => verdict,
            Some(Verdict::Unknown) => self.written(row, true)?.unwrap_or(Verdict::Unknown),
            known => match self.judge_file(row, &place, &found)? {
                // If no digest is listed, the bytes are compared with the written bytes.
                Verdict::Unverified if known.is_some() => {
                    self.written(row, true)?.unwrap_or(Verdict::Unverified)
                }
                verdict => verdict,
            },
        };
        let same = verdict != Verdict::Mismatch;
        // A length or a time that agrees is worth something, unless the bytes were to be read.
        let has_facts = !self.full && (row.length.is_some() || row.modified.is_some());
        self.report.unverified += u64::from(verdict == Verdict::Unverified && !has_facts);
        if place.form == Form::Leaf {
            self.report_reserved(expected, &row.uri, &place.path)?;
        }
        if verdict == Verdict::Unknown {
            self.report.unknown += 1;
        } else if same {
            self.report.same += 1;
        } else {
            self.report.updated += 1;
            self.report_item((&row.uri, row.href.as_deref()), &place.path, ItemAction::Different);
        }
        Ok(())
    }

    /// The verdict from a comparison with the bytes that the copy wrote; `None` if the copy wrote
    /// no bytes, or its row is unreliable.
    fn written(&mut self, listed: &ExpectedRow, read: bool) -> Result<Option<Verdict>, Error> {
        let Some((mirror, kept)) = &mut self.written else { return Ok(None) };
        let row = mirror.row(&listed.uri)?.filter(|row| !is_distrusted(row));
        let Some(row) = row else { return Ok(None) };
        let damage = kept.damage(mirror, &row, read)?;
        let is_damaged = damage.is_some_and(|damage| !damage.kind.keeps_bytes());
        Ok(Some(if is_damaged {
            Verdict::Mismatch
        } else {
            self.expectation.judge_row(listed, &row)
        }))
    }

    /// The verdict for a file without other evidence.
    fn judge_file(&self, row: &ExpectedRow, place: &Place, found: &Stat) -> Result<Verdict, Error> {
        let mut listed = Digests::default();
        listed.set_from_bytes(&row.digests);
        let is_touched =
            row.modified.is_some_and(|time| !self.system.has_time(time, found.mtime_ns));
        if row.length.is_some_and(|length| length != found.size) {
            return Ok(Verdict::Mismatch);
        }
        if !self.full && (!is_touched || listed.strongest().is_none()) {
            return Ok(if is_touched { Verdict::Mismatch } else { Verdict::Unverified });
        }
        let (mut file, _) = place.dir.open_read(place.name())?;
        let (digests, length) = hash_file(&mut file, &listed).map_err(|cause| {
            Error::new("io", ExitCode::Io, format!("cannot read a file: {cause}")).with_cause(cause)
        })?;
        Ok(judge(&listed, row.length, &digests, length))
    }

    /// Reports a resource under its reserved name, if a folder that no resource needs has its own.
    fn report_reserved(
        &mut self,
        expected: &Expected,
        uri: &str,
        path: &[u8],
    ) -> Result<(), Error> {
        let (beneath, mut rows, mut own) = (format!("{uri}/"), Vec::new(), Vec::new());
        expected.after(&beneath, 1, &mut rows)?;
        let is_needed =
            expected.contains(&beneath)? || rows.iter().any(|row| row.uri.starts_with(&beneath));
        if is_needed || self.map.path_into(uri, Form::Plain, &mut own).is_err() {
            return Ok(());
        }
        let is_folder = self.folder.dir(own.split(|byte| *byte == b'/')).is_ok();
        if is_folder {
            self.report.conflicts += 1;
            let message = reserved_message(&shown(&own), &shown(path));
            self.observer.event(&Event::Notice(Problem {
                code: "path.conflict",
                uri,
                message: &message,
            }));
        }
        Ok(())
    }

    /// Whether the filters exclude the resource.
    fn is_excluded(&mut self, uri: &str) -> Result<bool, Error> {
        if self.selection.is_empty() {
            return Ok(false);
        }
        let by_name = self.selection.decide(Subject { uri, ..Subject::default() });
        Ok(matches!(by_name, Decision::Excluded(_)) || self.excluded.contains(uri)?)
    }

    /// Walks the folder for files without a listed resource; not recursive, so that any depth is
    /// possible.
    fn present(&mut self, expected: &Expected) -> Result<(), Error> {
        let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
        while let Some(path) = waiting.pop() {
            stop(self.cancel)?;
            let components = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
            let dir = self.folder.dir(components)?;
            let below = waiting.len();
            let mut extra: Vec<Vec<u8>> = Vec::new();
            for entry in dir.entries()? {
                let entry = entry?;
                if path.is_empty() && entry.name == STATE_FOLDER.as_bytes()
                    || entry.name.starts_with(TEMPORARY_PREFIX)
                {
                    continue;
                }
                let mut full = path.clone();
                if !full.is_empty() {
                    full.push(b'/');
                }
                full.extend_from_slice(&entry.name);
                if entry.kind == Kind::Folder {
                    waiting.push(full);
                    continue;
                }
                // A file of links belongs to the listed file next to it.
                let mut of = full.clone();
                if let Some(owner) = crate::sink::via::owner(&entry.name) {
                    of.truncate(full.len() - entry.name.len());
                    of.extend_from_slice(owner);
                }
                let uri = self.map.uri(&of).filter(|_| entry.kind == Kind::File);
                let is_known = match &uri {
                    Some((uri, _)) => expected.contains(uri)? || self.is_excluded(uri)?,
                    None => false,
                };
                let uri = uri.filter(|_| of == full).map(|(uri, _)| uri);
                let is_unknown = !is_known && self.is_unknown(expected, uri.as_deref())?;
                self.report.unknown += u64::from(is_unknown);
                if !is_known && !is_unknown {
                    extra.push(full);
                }
                if extra.len() >= SORTED_MAX {
                    self.extra(&mut extra);
                }
            }
            self.extra(&mut extra);
            waiting[below..].sort_unstable_by(|one, two| two.cmp(one));
        }
        Ok(())
    }

    /// Whether a file is of a resource of the copy about which documents show nothing.
    fn is_unknown(&self, expected: &Expected, uri: Option<&str>) -> Result<bool, Error> {
        let Some((uri, (mirror, _))) = uri.zip(self.written.as_ref()) else { return Ok(false) };
        let Some(row) = mirror.row(uri)? else { return Ok(false) };
        Ok(self.expectation.extra(expected, &row)? == OneSide::Unknown)
    }

    /// Reports files of a folder without a listed resource, sorted by name.
    fn extra(&mut self, paths: &mut Vec<Vec<u8>>) {
        paths.sort_unstable();
        for path in paths.drain(..) {
            self.report.extra += 1;
            self.report_item(("", None), &path, ItemAction::Extra);
        }
    }

    fn report_item(&self, (uri, href): (&str, Option<&str>), path: &[u8], action: ItemAction) {
        let path = String::from_utf8_lossy(path);
        self.observer.event(&Event::Item(Item { href, path: &path, ..Item::new(uri, action) }));
    }
}

/// The file of a URI, in either form of its path.
fn find(folder: &Folder, map: &PathMap, uri: &str) -> Option<(Place, Stat)> {
    let mut path = Vec::new();
    for form in [Form::Plain, Form::Leaf] {
        if map.path_into(uri, form, &mut path).is_err() {
            return None;
        }
        let mut components: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let name = components.pop()?;
        if let Ok(dir) = folder.dir(components)
            && let Ok(stat) = dir.stat(name)
            && stat.kind == Kind::File
        {
            let mut place = Place::of_file(dir, path);
            place.form = form;
            return Some((place, stat));
        }
    }
    None
}
