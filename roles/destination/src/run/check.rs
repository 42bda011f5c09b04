//! Checking a copy with its own database, without the Source.
//!
//! Damaged files can be fetched again: a repair adds them to the plan, and the next run fetches
//! them.

use crate::copy::key;
use crate::copy::last_audit::LastAudit;
use crate::copy::marker::state_elsewhere;
use crate::copy::names::{DATABASE, LOCK, temporary_name};
use crate::copy::partial::Partials;
use crate::copy::path_map::STATE_FOLDER;
use crate::copy::probe::FileSystem;
use crate::copy::state::folder_of;
use crate::copy::state_folder::{StateFolder, make_folder};
use crate::read::position::Position;
use crate::report::error::{Error, ExitCode};
use crate::report::last_run::LastRun;
use crate::report::lasting::{Failing, Fault, Held, Lasting};
use crate::report::meters::short_name;
use crate::report::sinks::SinkOptions;
use crate::sink::folder::FolderKept;
use crate::sink::kept::{distrusted, is_distrusted, plan_again};
use crate::sink::kind::KeptCopy;
use crate::sink::rdf_rules::NAMED;
use abreast_core::Meter;
use abreast_folder::{Folder, Locked};
use abreast_store::integrity::{Findings, check_mirror};
use abreast_store::mirror::{LeftOutStatements, Mirror, PlanSummary, Row};
use abreast_webtypes::count;
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The result of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyFacts {
    /// Number of resources in the database.
    pub resources: u64,
    /// Number of resources whose bytes were read.
    pub read: u64,
    /// Number of items in a plan that waits for the next run.
    pub pending: u64,
}

/// The folders of a copy and of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPlace {
    /// The folder of the files; `None` if only the database is known, and it does not contain the
    /// folder.
    pub folder: Option<PathBuf>,
    /// The folder of the copy's state.
    pub state: PathBuf,
}

impl CopyPlace {
    /// Finds the copy in a folder, or the copy whose state is in that folder.
    pub fn find(dir: &Path) -> Option<Self> {
        let own = dir.join(STATE_FOLDER);
        let state = if own.join(DATABASE).is_file() { Some(own) } else { state_elsewhere(dir) };
        if let Some(state) = state {
            return Some(Self { folder: Some(dir.to_owned()), state });
        }
        if !dir.join(DATABASE).is_file() {
            return None;
        }
        let folder = folder_of(dir).or_else(|| {
            let real = dir.canonicalize().ok()?;
            real.ends_with(STATE_FOLDER).then(|| real.parent().map(Path::to_owned)).flatten()
        });
        Some(Self { folder, state: dir.to_owned() })
    }

    /// The file that a process locks while it uses the copy.
    pub fn lock_file(&self) -> Option<PathBuf> {
        let marker = self.folder.as_ref()?.join(STATE_FOLDER);
        Some(marker.join(std::ffi::OsStr::from_bytes(LOCK)))
    }

    /// Locks the copy for a repair; `None` if another process has the lock.
    ///
    /// # Errors
    /// The folder of the copy is not known, or the lock cannot be created.
    pub fn take(&self) -> Result<Option<Locked>, Error> {
        let folder = self.folder.as_ref().ok_or_else(|| {
            let message = format!(
                "the state in {} does not name the folder of its copy",
                self.state.display()
            );
            Error::new("folder.state", ExitCode::Usage, message)
                .with_help("name the folder of the copy")
        })?;
        let marker = make_folder(&Folder::open(folder)?.root(), STATE_FOLDER.as_bytes());
        let place = folder.join(STATE_FOLDER);
        let lock = marker.and_then(|marker| marker.lock(LOCK));
        lock.map_err(|error| crate::copy::unusable::unusable(&place, error.into()))
    }

    /// The folder of the copy, or of its state if the former is unknown.
    pub fn shown_folder(&self) -> &Path {
        self.folder.as_ref().unwrap_or(&self.state)
    }
}

/// Checks a copy. `wants` selects the resources whose bytes are read; `meter` shows how many are checked.
///
/// # Errors
/// The folder or the database cannot be read at all, or the check was stopped.
pub fn check_copy(
    place: &CopyPlace,
    wants: &dyn Fn(&str) -> bool,
    findings: &mut Findings,
    cancel: &AtomicBool,
    meter: &Meter,
) -> Result<CopyFacts, Error> {
    let database = place.state.join(DATABASE);
    if !check_mirror(&database, findings)? {
        return Ok(CopyFacts::default());
    }
    let mirror = Mirror::open_read_only(&database)?;
    let mut facts = CopyFacts::default();
    let counts = mirror.pending_counts()?;
    facts.pending = counts.fetches + counts.deletes + counts.held + counts.conflicts;
    if facts.pending > 0 {
        let message =
            format!("the next run has {} to bring up to date", count(facts.pending, "resource"));
        findings.note("copy.pending", place.shown_folder().display().to_string(), message);
    }
    note_lasting(place, &mirror, findings)?;
    let kind = kind_of(&mirror)?;
    let mut kept = match (&place.folder, &kind) {
        (Some(folder), Some(kind)) => kind.kind().kept(&copy_in(folder, place, &mirror))?,
        _ => None,
    };
    meter.begin("checking");
    each_row(&mirror, cancel, &mut |row| {
        facts.resources += 1;
        meter.add(1, 0);
        // Known damage is already part of the plan.
        let Some(kept) = kept.as_mut().filter(|_| !is_distrusted(row)) else { return Ok(()) };
        let read = wants(&row.uri);
        facts.read += u64::from(read);
        let _named = read.then(|| meter.item(|| short_name(&row.uri)));
        match kept.damage(&mirror, row, read)? {
            Some(damage) if damage.kind.keeps_bytes() => {
                findings.note(damage.kind.rule(), row.uri.clone(), damage.message);
            }
            Some(damage) => findings.add(damage.kind.rule(), row.uri.clone(), damage.message),
            None => {}
        }
        Ok(())
    })?;
    mirror.each_without_row(&mut |uri| {
        let message = "it is stored, and the state does not know which version it is";
        findings.add("copy.unrecorded", uri, message);
    })?;
    let Some(folder) = &place.folder else {
        let message = "the state does not name the folder of its copy, so that no file was checked; name that folder";
        findings.note("copy.elsewhere", place.shown_folder().display().to_string(), message);
        return Ok(facts);
    };
    let Some(kind) = kind else {
        let word = mirror.meta("sink")?.unwrap_or_default();
        let message = format!(
            "what a copy of the kind `{word}` keeps elsewhere is not checked; `abreast audit` does that"
        );
        findings.note("copy.elsewhere", place.shown_folder().display().to_string(), message);
        return Ok(facts);
    };
    if kind.facts().is_folder()
        && let Some(files) = FolderKept::open(folder, &mirror)?
    {
        let begun = begun(&place.state)?;
        files.leftovers(&mut |_, name, path| {
            if !begun.contains(name) {
                findings.add("copy.leftover", path, "left by a run that was killed");
            }
        })?;
    }
    if let Some(segments) = kind.kind().segments(folder) {
        check_segments(&segments, &mirror, findings)?;
    }
    Ok(facts)
}

/// Most resources, and items of the plan, that are counted for a report.
const COUNTED_MAX: u32 = 100_000;

/// A description of a copy, for reports. Times are W3C Datetimes.
#[derive(Clone, Debug, Default)]
pub struct CopyState {
    /// URL of the Source, as the last run used it.
    pub source: Option<String>,
    /// The instant up to which the changes of the Source are known.
    pub cursor: Option<String>,
    /// Number of resources, counted up to 100,000.
    pub resources: u64,
    /// Whether the copy has more resources than were counted.
    pub resources_more: bool,
    /// The plan, counted up to 100,000 items.
    pub plan: PlanSummary,
    /// Time of the first run that held deletions back, if any are held back.
    pub held_since: Option<String>,
    /// Time of the first of the uninterrupted runs with failures.
    pub failing_since: Option<String>,
    /// The last run; `None` if no run of this version has ended.
    pub run: Option<LastRun>,
    /// The last audit that came to its end.
    pub audit: Option<LastAudit>,
}

/// Reads the description of a copy, also during a run, in limited time for any size of the copy.
///
/// # Errors
/// The database cannot be read.
pub fn copy_state(place: &CopyPlace) -> Result<CopyState, Error> {
    let mirror = Mirror::open_read_only(&place.state.join(DATABASE))?;
    let counted = mirror.count_rows_up_to(u64::from(COUNTED_MAX) + 1)?;
    let Lasting { held, failing, .. } = Lasting::read(&mirror)?;
    Ok(CopyState {
        source: mirror.meta(key::SOURCE_URL)?,
        cursor: Position::load(&mirror)?.text(),
        resources: counted.min(u64::from(COUNTED_MAX)),
        resources_more: counted > u64::from(COUNTED_MAX),
        plan: mirror.summarise_plan(COUNTED_MAX)?,
        held_since: held.map(|held| held.since),
        failing_since: failing.map(|failing| failing.since),
        run: LastRun::read(&mirror)?,
        audit: LastAudit::read(&place.state),
    })
}

/// Adds the conditions that last over several runs to the findings.
fn note_lasting(place: &CopyPlace, mirror: &Mirror, findings: &mut Findings) -> Result<(), Error> {
    let folder = || place.shown_folder().display().to_string();
    let Lasting { held, failing, faults } = Lasting::read(mirror)?;
    if let Some(Held { since, of, .. }) = held {
        let size = of.map(|of| format!(", when the copy had {}", count(of, "resource")));
        let message = format!(
            "deletions that are held back: {}, since {since}{}",
            mirror.count_deletes()?,
            size.unwrap_or_default()
        );
        findings.note("copy.held", folder(), message);
    }
    if let Some(Failing { since, number }) = failing {
        let message =
            format!("every run since {since} had failures or refusals; the first had {number}");
        findings.note("copy.failing", folder(), message);
    }
    for Fault { code, uri, since, runs } in faults {
        let message =
            format!("it cannot be used since {since} ({code}, in {})", count(runs, "run"));
        findings.note("copy.fault", uri, message);
    }
    let LeftOutStatements { statements, places, first } = mirror.left_out(NAMED)?;
    if statements > 0 {
        let message = format!(
            "{} left out, since they are not valid, of {}",
            count(statements, "statement"),
            count(places, "resource or file")
        );
        findings.note("copy.left-out", folder(), message);
    }
    for (uri, fault) in first {
        findings.note("copy.left-out", uri, fault);
    }
    Ok(())
}

/// Adds damaged and missing resources to the plan, so that the next run fetches them, and removes
/// leftovers of killed runs. Returns the steps. The caller holds the copy's lock.
///
/// # Errors
/// The database cannot be written, or the repair was stopped.
pub fn repair_copy(
    place: &CopyPlace,
    wants: &dyn Fn(&str) -> bool,
    dry_run: bool,
    cancel: &AtomicBool,
    meter: &Meter,
) -> Result<Vec<String>, Error> {
    let Some(folder) = &place.folder else { return Ok(Vec::new()) };
    let database = place.state.join(DATABASE);
    let mirror =
        if dry_run { Mirror::open_read_only(&database)? } else { Mirror::open(&database)? };
    let (mut steps, mut unrecorded) = (Vec::new(), Vec::new());
    mirror.each_without_row(&mut |uri| unrecorded.push(uri.to_owned()))?;
    let kind = kind_of(&mirror)?;
    let copy = copy_in(folder, place, &mirror);
    let mut bad: Vec<Row> = Vec::new();
    if let Some(kind) = &kind
        && let Some(mut kept) = kind.kind().kept(&copy)?
    {
        meter.begin("checking");
        each_row(&mirror, cancel, &mut |row| {
            meter.add(1, 0);
            if is_distrusted(row) {
                return Ok(());
            }
            let read = wants(&row.uri);
            let _named = read.then(|| meter.item(|| short_name(&row.uri)));
            let damage = kept.damage(&mirror, row, read)?;
            if damage.is_some_and(|damage| !damage.kind.keeps_bytes()) {
                bad.push(row.clone());
            }
            Ok(())
        })?;
    }
    if kind.as_ref().is_some_and(|kind| kind.facts().is_folder())
        && let Some(files) = FolderKept::open(folder, &mirror)?
    {
        let (begun, mut leftovers) = (begun(&place.state)?, 0_u64);
        files.leftovers(&mut |dir, name, _| {
            if begun.contains(name) {
                return;
            }
            leftovers += 1;
            if !dry_run {
                let _ = dir.unlink(name);
            }
        })?;
        if leftovers > 0 {
            steps.push(format!("remove {} that killed runs left", count(leftovers, "file")));
        }
    }
    let cut = match &kind {
        Some(kind) => kind.kind().lost_ends(folder, &mirror)?,
        None => Vec::new(),
    };
    let faults = !bad.is_empty() || !cut.is_empty() || !unrecorded.is_empty();
    if faults && !dry_run {
        mirror.begin()?;
        for row in &bad {
            plan_again(&mirror, row)?;
        }
        for uri in &unrecorded {
            mirror.put_row(&distrusted(&Row { uri: uri.clone(), ..Row::default() }))?;
        }
        for (segment, length) in &cut {
            if let Some(kind) = &kind {
                kind.kind().forget_end(&copy, (segment, *length))?;
            }
        }
        mirror.commit()?;
    }
    if let Some(first) = unrecorded.first() {
        let resources = count(unrecorded.len() as u64, "resource");
        steps.push(format!(
            "compare {resources} (the first one is {first}) with the Source by `abreast sync --baseline`"
        ));
    }
    steps.extend(cut.iter().map(|(segment, length)| {
        format!("forget what {} has lost beyond {length} bytes", segment.name)
    }));
    steps.extend(
        bad.iter().map(|row| format!("fetch {} again with the next `abreast sync`", row.uri)),
    );
    Ok(steps)
}

/// The kind of a copy whose files are all in its folder; the bytes of other kinds are not checked.
fn kind_of(mirror: &Mirror) -> Result<Option<SinkOptions>, Error> {
    let word = mirror.meta("sink")?;
    Ok(SinkOptions::of_files(word.as_deref().unwrap_or("folder")))
}

fn copy_in<'c>(folder: &'c Path, place: &'c CopyPlace, mirror: &'c Mirror) -> KeptCopy<'c> {
    KeptCopy { folder, state: &place.state, mirror, net: abreast_net::Options::default() }
}

/// The incomplete files that the next run continues, as temporary file names.
fn begun(state: &Path) -> Result<HashSet<Vec<u8>>, Error> {
    let notes = Partials::new(StateFolder::at(state)?).all();
    Ok(notes.iter().map(|note| temporary_name(&note.uri)).collect())
}

/// Repairs the database of the copy. The next run compares salvaged rows with the Source.
///
/// # Errors
/// No row of the database can be read.
pub fn repair_state(place: &CopyPlace, dry_run: bool) -> Result<Vec<String>, Error> {
    Ok(abreast_store::repair::repair_mirror(&place.state.join(DATABASE), dry_run)?.steps)
}

/// The properties of a file system, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystemFacts {
    /// The properties that concern file names.
    pub names: String,
    /// The properties that concern modification times.
    pub times: String,
}

/// Tests how the file system of a folder changes file names and times.
///
/// # Errors
/// The folder is not writable.
pub fn file_system(folder: &Path) -> Result<FileSystemFacts, Error> {
    let found = FileSystem::probe(&Folder::open(folder)?.root())?;
    let case = if found.rules.folds_case {
        "does not distinguish A from a"
    } else {
        "distinguishes A from a"
    };
    let text = if found.rules.ascii_only {
        "changes or refuses some names"
    } else {
        "keeps every name as it is"
    };
    let names = format!("the file system {case} and {text}; names are escaped where needed");
    Ok(FileSystemFacts { names, times: format!("times are kept to {} ns", found.time_step) })
}

fn each_row(
    mirror: &Mirror,
    cancel: &AtomicBool,
    visit: &mut dyn FnMut(&Row) -> Result<(), Error>,
) -> Result<(), Error> {
    mirror.each_batch(|rows| {
        rows.iter().try_for_each(|row| {
            if cancel.load(Ordering::Relaxed) { Err(Error::cancelled()) } else { visit(row) }
        })
    })
}

/// Checks the lengths of the files that resources are packed into.
fn check_segments(folder: &Path, mirror: &Mirror, findings: &mut Findings) -> Result<(), Error> {
    for segment in mirror.segments()? {
        let path = folder.join(&segment.name);
        let place = path.display().to_string();
        match std::fs::metadata(&path).map(|metadata| metadata.len()) {
            Ok(length) if length < segment.length => {
                findings.add(
                    "copy.segment",
                    place,
                    format!("it has {}, {} were written", count(length, "byte"), segment.length),
                );
            }
            Ok(length) if length > segment.length => {
                let message = format!(
                    "bytes of a run that was killed follow, which the next run cuts off: {}",
                    length - segment.length
                );
                findings.note("copy.leftover", place, message);
            }
            Ok(_) => {}
            Err(error) => {
                findings.add("copy.segment", place, format!("it cannot be read: {error}"));
            }
        }
    }
    Ok(())
}
