//! Copies of all sets of a Source, each in a separate folder (`--all-sets`).
//!
//! The record `sets.json` maps each set to its folder and persists between runs. A set therefore
//! never changes its folder, and the copies of sets that the Source no longer offers are known.
//! Each copy has its own state, like the copy of a single set; see decision 26 for the reasons.

use crate::errors::ExitCodeError;
use crate::report::Reporter;
use crate::report::failed;
use abreast_destination::check::CopyPlace;
use abreast_destination::{
    AuditOptions, AuditReport, Event, Mode, NewFolders, Observer, Problem, SETS_RECORD as RECORD,
    SourceSet, Summary, SyncOptions, source_sets,
};
use abreast_folder::{Folder, Locked, unsealed, write_sealed};
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LOCK: &[u8] = b"sets.lock";
const STATE_FOLDER: &str = ".abreast";
/// Longest record read.
const RECORD_BYTES_MAX: u64 = 64 << 20;
/// Longest folder name made of a set's name, in bytes.
const NAME_BYTES_MAX: usize = 100;
/// How often a Source that is followed is asked which sets it has.
const ASK_AGAIN: Duration = Duration::from_secs(600);
/// How often a stop is noticed in between.
const TICK: Duration = Duration::from_millis(100);

/// Which set is in which folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SetFolders {
    sets: Vec<SetFolder>,
}

/// One set and its folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SetFolder {
    folder: String,
    capability_list: String,
}

/// The copies, and what each is synchronised with.
type Copies = Vec<(SetFolder, SyncOptions)>;
/// The result of a run for one set.
type RunResult = Result<Summary, abreast_destination::Error>;

/// How one set is synchronised.
pub(crate) type Sync<'a> =
    &'a (dyn Fn(&SyncOptions, &dyn Observer) -> RunResult + std::marker::Sync);

/// Synchronises all sets, one after the other, and reports one summary; gives back the exit code.
pub(crate) fn sync(
    options: &SyncOptions,
    one: Sync<'_>,
    reporter: &dyn Fn(Option<&str>) -> Reporter,
    cancel: &AtomicBool,
) -> Result<u8> {
    let began = Instant::now();
    let whole = reporter(None);
    let (_lock, copies) = match open(options, &whole, cancel) {
        Ok(opened) => opened,
        Err(error) => return not_opened(error, &whole),
    };
    let mut total = Summary { dry_run: options.dry_run, ..Summary::default() };
    let mut code = 0;
    for (place, options) in &copies {
        let reporter = reporter(Some(&place.folder));
        let result = one(options, &Parts(&reporter));
        reporter.finish();
        let own = match result {
            Ok(summary) => {
                add(&mut total, &summary);
                summary.exit_code
            }
            Err(error) => failed(&reporter, &error),
        };
        if own != 0 {
            let message = format!("the set in {} ended with code {own}", place.folder);
            whole.event(&Event::Notice(Problem {
                code: "sets.failed",
                uri: &place.capability_list,
                message: &message,
            }));
        }
        code = if code == 0 { own } else { code };
        if own == 130 {
            break;
        }
    }
    total.seconds = began.elapsed().as_secs_f64();
    total.exit_code = code;
    // A set that could not be synchronised at all is a failure of the whole.
    total.failed += u64::from(code != 0 && total.failed + total.skipped + total.held == 0);
    whole.event(&Event::Summary(&total));
    whole.finish();
    Ok(code)
}

/// Follows all sets in parallel, including sets that the Source adds later. `parts` is the number of
/// equal shares into which the process divides its limit of open files; this call uses one share.
pub(crate) fn follow(
    options: &SyncOptions,
    parts: usize,
    one: Sync<'_>,
    reporter: &(dyn Fn(Option<&str>) -> Reporter + std::marker::Sync),
    cancel: &AtomicBool,
) -> Result<u8> {
    let whole = reporter(None);
    let (_lock, mut copies) = match open(options, &whole, cancel) {
        Ok(opened) => opened,
        Err(error) => return not_opened(error, &whole),
    };
    let mut connections = crate::open_files::fetches(copies.len(), parts, options.connections)?;
    let codes = std::thread::scope(|scope| {
        let mut running: HashMap<String, std::thread::ScopedJoinHandle<'_, u8>> = HashMap::new();
        let mut codes: HashMap<String, u8> = HashMap::new();
        loop {
            for (place, mut options) in copies.drain(..) {
                options.connections = connections;
                if running.get(&place.folder).is_some_and(|thread| !thread.is_finished()) {
                    continue;
                }
                let folder = place.folder.clone();
                let follow = move || {
                    let reporter = reporter(Some(&folder));
                    let result = one(&options, &reporter);
                    reporter.finish();
                    result
                        .map_or_else(|error| failed(&reporter, &error), |summary| summary.exit_code)
                };
                if let Some(ended) = running.insert(place.folder.clone(), scope.spawn(follow)) {
                    codes.insert(place.folder, ended.join().unwrap_or(1));
                }
            }
            let until = Instant::now() + ASK_AGAIN;
            while Instant::now() < until && !cancel.load(Ordering::Relaxed) {
                std::thread::sleep(TICK);
                if running.values().all(std::thread::ScopedJoinHandle::is_finished) {
                    break;
                }
            }
            if cancel.load(Ordering::Relaxed)
                || running.values().all(std::thread::ScopedJoinHandle::is_finished)
            {
                break;
            }
            // A set whose follower ended is started again. A Source that does not respond is asked
            // in the next round.
            copies = place(options, &whole, cancel).unwrap_or_default();
            match crate::open_files::fetches(copies.len(), parts, options.connections) {
                Ok(fitting) => connections = fitting,
                Err(error) => {
                    copies.retain(|(place, _)| running.contains_key(&place.folder));
                    whole.event(&Event::Notice(Problem {
                        code: "sets.files",
                        uri: &options.url,
                        message: &format!("new sets are not followed: {error}"),
                    }));
                }
            }
        }
        codes.extend(
            running.into_iter().map(|(folder, thread)| (folder, thread.join().unwrap_or(1))),
        );
        codes
    });
    whole.finish();
    Ok(codes.into_values().max().unwrap_or(0))
}

/// Audits all sets and reports one outcome.
pub(crate) fn audit(
    options: &AuditOptions,
    reporter: &dyn Fn(Option<&str>) -> Reporter,
    cancel: &AtomicBool,
) -> Result<(u8, AuditReport)> {
    let began = Instant::now();
    let whole = reporter(None);
    let mut total = AuditReport { full: options.full, ..AuditReport::default() };
    let mut sync = options.sync.clone();
    sync.state = states_elsewhere(&sync).or(sync.state);
    let copies = match place(&sync, &whole, cancel) {
        Ok(copies) => copies,
        Err(error) => return not_opened(error, &whole).map(|code| (code, total)),
    };
    let mut code = 0;
    for (place, sync) in copies {
        if !crate::there::is_dir(&sync.folder)? {
            let message = "this set has no copy yet\n  help: `abreast sync --all-sets` makes it";
            whole.event(&Event::Notice(Problem {
                code: "sets.missing",
                uri: &place.capability_list,
                message,
            }));
            code = if code == 0 { 1 } else { code };
            total.missing_sets += 1;
            continue;
        }
        let reporter = reporter(Some(&place.folder));
        let result = abreast_destination::audit(
            &AuditOptions { sync, full: options.full },
            &Parts(&reporter),
            cancel,
        );
        reporter.finish();
        let own = match result {
            Ok(report) => {
                total.same += report.same;
                total.updated += report.updated;
                total.missing += report.missing;
                total.extra += report.extra;
                total.unverified += report.unverified;
                total.unknown += report.unknown;
                total.partial |= report.partial;
                total.conflicts += report.conflicts;
                total.requests += report.requests;
                total.held += report.held;
                total.held_since = earlier(total.held_since, report.held_since);
                total.failing_since = earlier(total.failing_since, report.failing_since);
                report.exit_code
            }
            Err(error) => failed(&reporter, &error),
        };
        code = if code == 0 { own } else { code };
        if own == 130 {
            break;
        }
    }
    total.seconds = began.elapsed().as_secs_f64();
    total.exit_code = code;
    whole.event(&Event::Audit(&total));
    whole.finish();
    Ok((code, total))
}

fn not_opened(error: anyhow::Error, reporter: &Reporter) -> Result<u8> {
    error.downcast::<abreast_destination::Error>().map(|error| failed(reporter, &error))
}

/// Passes on the events for one set of several, except summaries: the run prints one for all sets.
struct Parts<'a>(&'a Reporter);

impl Observer for Parts<'_> {
    fn event(&self, event: &Event<'_>) {
        if !matches!(event, Event::Summary(_) | Event::Audit(_)) {
            self.0.event(event);
        }
    }

    fn wants_items(&self) -> bool {
        self.0.wants_items()
    }
}

/// The earlier of two times in UTC, if there is any.
fn earlier(one: Option<String>, other: Option<String>) -> Option<String> {
    one.into_iter().chain(other).min()
}

fn add(total: &mut Summary, one: &Summary) {
    total.mode = match (total.mode, one.mode) {
        (Mode::Baseline, _) | (_, Mode::Baseline) => Mode::Baseline,
        (Mode::Incremental, _) | (_, Mode::Incremental) => Mode::Incremental,
        _ => Mode::Unchanged,
    };
    for (sum, part) in [
        (&mut total.created, one.created),
        (&mut total.updated, one.updated),
        (&mut total.patched, one.patched),
        (&mut total.deleted, one.deleted),
        (&mut total.unchanged, one.unchanged),
        (&mut total.excluded, one.excluded),
        (&mut total.selected, one.selected),
        (&mut total.skipped, one.skipped),
        (&mut total.failed, one.failed),
        (&mut total.held, one.held),
        (&mut total.damaged, one.damaged),
        (&mut total.unverified, one.unverified),
        (&mut total.untried, one.untried),
        (&mut total.bytes, one.bytes),
        (&mut total.requests, one.requests),
        (&mut total.notices, one.notices),
    ] {
        *sum += part;
    }
    total.held_since = earlier(total.held_since.take(), one.held_since.clone());
    total.failing_since = earlier(total.failing_since.take(), one.failing_since.clone());
    total.delete_limit |= one.delete_limit;
    total.budget_spent |= one.budget_spent;
}

/// The folder that contains the record of all copies.
fn common_state(options: &SyncOptions) -> PathBuf {
    match (&options.sink, &options.state) {
        // A stream or an object store has no folder of files, so `folder` is the folder of its state.
        (sink, None) if sink.is_local() => options.folder.join(STATE_FOLDER),
        (_, Some(state)) => state.clone(),
        (_, None) => options.folder.clone(),
    }
}

/// The folder of the copies' states if it is outside the copies and the options do not contain it.
fn states_elsewhere(options: &SyncOptions) -> Option<PathBuf> {
    let is_unnamed = options.state.is_none() && options.sink.is_local();
    let state = is_unnamed.then(|| state_in(&options.folder)).flatten()?;
    (state != common_state(options) && state != options.folder).then_some(state)
}

/// Takes the copies for this run, and finds which there are.
fn open(
    options: &SyncOptions,
    reporter: &Reporter,
    cancel: &AtomicBool,
) -> Result<(Option<Locked>, Copies)> {
    if options.dry_run {
        return Ok((None, place(options, reporter, cancel)?));
    }
    abreast_destination::check_places(options)?;
    if let Some(state) = states_elsewhere(options) {
        let (copies, state) = (options.folder.display(), state.display());
        let message = format!(
            "the copies in {copies} have their states in {state}\n  help: give `--state {state}`"
        );
        bail!(ExitCodeError { message, code: 2 });
    }
    let state = common_state(options);
    let new =
        NewFolders::make(&state).with_context(|| format!("cannot make `{}`", state.display()))?;
    let dir = Folder::open(&state)
        .with_context(|| format!("cannot open the folder of the state `{}`", state.display()))?
        .root();
    let had_lock = dir.stat(LOCK).is_ok();
    let lock = abreast_destination::lock(&dir, LOCK, &options.folder)?;
    match place(options, reporter, cancel) {
        Ok(copies) => Ok((Some(lock), copies)),
        Err(error) => {
            // Nothing was copied: the files created for the copy are removed.
            if !had_lock {
                let _ = dir.unlink(LOCK);
            }
            new.remove();
            Err(error)
        }
    }
}

/// The copies of all sets in a folder, each with its name; empty for any other folder.
pub(crate) fn folders(dir: &Path) -> Result<Vec<(String, PathBuf)>> {
    let Some(state) = state_in(dir) else { return Ok(Vec::new()) };
    let sets = read(&state)?.sets.into_iter();
    Ok(sets.map(|place| (place.folder.clone(), dir.join(place.folder))).collect())
}

/// Locks the copies of all sets in a folder, so that no other run uses them.
pub(crate) fn take(dir: &Path) -> Result<Option<Locked>> {
    let Some(state) = state_in(dir) else { return Ok(None) };
    let state = Folder::open(&state)
        .with_context(|| format!("cannot open the folder of the state `{}`", state.display()))?;
    Ok(Some(abreast_destination::lock(&state.root(), LOCK, dir)?))
}

/// The folder with the record: `dir`, its state folder, or the folder of `--state`, which is found
/// through a copy in `dir`.
fn state_in(dir: &Path) -> Option<PathBuf> {
    let has_record = |state: &PathBuf| state.join(RECORD).is_file();
    if let Some(state) = [dir.join(STATE_FOLDER), dir.to_owned()].into_iter().find(has_record) {
        return Some(state);
    }
    let folders = std::fs::read_dir(dir)
        .ok()?
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut states = folders
        .filter_map(|entry| CopyPlace::find(&entry.path())?.state.parent().map(Path::to_owned));
    states.find(has_record)
}

/// Asks the Source for its sets, and gives each its folder.
fn place(options: &SyncOptions, reporter: &Reporter, cancel: &AtomicBool) -> Result<Copies> {
    let state = common_state(options);
    if state.join("mirror.db").exists() {
        let message = format!(
            "{} is a copy of one set\n  help: give `--all-sets` a folder of its own",
            options.folder.display()
        );
        bail!(ExitCodeError { message, code: 2 });
    }
    let found = source_sets(options, cancel)?;
    let known = read(&state)?;
    let record = known.with(&found);
    let listed: HashSet<&str> = found.iter().map(|set| set.url.as_str()).collect();
    let (here, gone): (Vec<SetFolder>, Vec<SetFolder>) = record
        .sets
        .iter()
        .cloned()
        .partition(|place| listed.contains(place.capability_list.as_str()));
    if !known.sets.is_empty() && gone.len() == known.sets.len() {
        let message = format!(
            "{} holds copies of other sets, such as {}, and of none that {} has\n  help: use another folder",
            options.folder.display(),
            gone[0].capability_list,
            options.url
        );
        bail!(ExitCodeError { message, code: 2 });
    }
    for place in gone {
        let message =
            format!("the Source no longer lists this set; its copy in {} is kept", place.folder);
        reporter.event(&Event::Notice(Problem {
            code: "sets.gone",
            uri: &place.capability_list,
            message: &message,
        }));
    }
    if !options.dry_run && state.is_dir() && record != known {
        write(&state, &record)?;
    }
    Ok(here
        .into_iter()
        .map(|place| {
            let options = options_of(options, &place);
            (place, options)
        })
        .collect())
}

/// The options for one copy, from the options for all.
fn options_of(all: &SyncOptions, place: &SetFolder) -> SyncOptions {
    let mut options = all.clone();
    options.url.clone_from(&place.capability_list);
    options.set = None;
    options.folder = all.folder.join(&place.folder);
    options.state = all.state.as_ref().map(|state| state.join(&place.folder));
    options.backup_dir = all.backup_dir.as_ref().map(|backup| backup.join(&place.folder));
    #[cfg(feature = "s3")]
    if let abreast_destination::SinkOptions::Objects(objects) = &mut options.sink {
        objects.url = format!("{}/{}", objects.url.trim_end_matches('/'), place.folder);
    }
    options
}

impl SetFolders {
    /// Assigns a folder to each set that does not yet have a folder.
    fn with(&self, found: &[SourceSet]) -> Self {
        let mut record = self.clone();
        let known: HashSet<String> =
            record.sets.iter().map(|place| place.capability_list.clone()).collect();
        // Some file systems ignore case in names.
        let mut taken: HashSet<String> =
            record.sets.iter().map(|place| place.folder.to_lowercase()).collect();
        for set in found.iter().filter(|set| !known.contains(&set.url)) {
            let name = folder_name(&set.name);
            let numbered = (2_u64..).map(|number| format!("{name}-{number}"));
            let mut names = std::iter::once(name.clone()).chain(numbered);
            let folder = names.find(|name| taken.insert(name.to_lowercase())).unwrap_or(name);
            record.sets.push(SetFolder { folder, capability_list: set.url.clone() });
        }
        record
    }

    /// Values that others wrote into the file cannot lead to another folder.
    fn is_usable(&self) -> bool {
        let mut names = HashSet::new();
        self.sets.iter().all(|place| {
            folder_name(&place.folder) == place.folder && names.insert(place.folder.to_lowercase())
        })
    }
}

/// A set's name as the name of a folder: letters, digits, `.`, `-` and `_`; never hidden, never
/// empty.
fn folder_name(name: &str) -> String {
    let plain =
        |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let mut folder: String = name.chars().map(plain).collect();
    folder.truncate(NAME_BYTES_MAX);
    if folder.is_empty() || folder.starts_with('.') {
        folder.insert(0, '_');
    }
    folder
}

fn read(state: &Path) -> Result<SetFolders> {
    use std::io::Read as _;
    let path = state.join(RECORD);
    let mut text = Vec::new();
    match std::fs::File::open(&path) {
        Ok(file) => file.take(RECORD_BYTES_MAX).read_to_end(&mut text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(SetFolders::default());
        }
        Err(error) => Err(error),
    }
    .with_context(|| format!("cannot read `{}`", path.display()))?;
    let read = unsealed(&text).ok().and_then(|text| serde_json::from_slice(text).ok());
    let record: Option<SetFolders> = read.filter(SetFolders::is_usable);
    record.with_context(|| {
        format!(
            "`{}` is damaged\n  help: remove it; folders are given to sets by their names again",
            path.display()
        )
    })
}

/// Whole or not at all, and durable before any copy is made.
fn write(state: &Path, record: &SetFolders) -> Result<()> {
    let path = state.join(RECORD);
    write_sealed(&path, serde_json::to_vec_pretty(record)?)
        .with_context(|| format!("cannot write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(name: &str, url: &str) -> SourceSet {
        SourceSet { name: name.to_owned(), url: url.to_owned() }
    }

    #[test]
    fn a_set_keeps_its_folder_whatever_comes_and_goes() {
        let first = SetFolders::default()
            .with(&[set("maps", "http://h/maps/c"), set("Maps", "http://h/Maps/c")]);
        let folders = |record: &SetFolders| {
            record.sets.iter().map(|place| place.folder.clone()).collect::<Vec<_>>()
        };
        assert_eq!(folders(&first), ["maps", "Maps-2"]);
        let second =
            first.with(&[set("Maps", "http://h/Maps/c"), set("maps", "http://other/maps/c")]);
        assert_eq!(folders(&second), ["maps", "Maps-2", "maps-3"]);
        assert_eq!(second.with(&[]), second);
    }

    #[test]
    fn names_of_sets_are_safe_names_of_folders() {
        for (name, folder) in [
            ("papers", "papers"),
            ("", "_"),
            ("..", "_.."),
            (".abreast", "_.abreast"),
            ("a/b\\c", "a_b_c"),
            ("caf\u{e9} \u{202e}", "caf___"),
            ("a%2Fb", "a_2Fb"),
        ] {
            assert_eq!(folder_name(name), folder);
        }
        assert!(folder_name(&"x".repeat(300)).len() <= 100);
    }

    proptest! {
        #[test]
        fn every_set_has_a_folder_of_its_own(names in proptest::collection::vec("[a-cA-C./ -]{0,3}", 0..20)) {
            let found: Vec<_> = names.iter().enumerate().map(|(n, name)| set(name, &format!("http://h/{n}"))).collect();
            let record = SetFolders::default().with(&found);
            prop_assert_eq!(record.sets.len(), found.len());
            prop_assert!(record.is_usable());
        }
    }

    #[test]
    fn a_record_that_was_tampered_with_is_refused() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(read(place.path()).unwrap(), SetFolders::default());
        let record = SetFolders::default().with(&[set("maps", "http://h/maps/c")]);
        write(place.path(), &record).unwrap();
        assert_eq!(read(place.path()).unwrap(), record);
        let right = std::fs::read(place.path().join(RECORD)).unwrap();
        for bit in (0..right.len() * 8).step_by(7) {
            let mut damaged = right.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(place.path().join(RECORD), damaged).unwrap();
            assert!(read(place.path()).unwrap_err().to_string().contains("help:"), "bit {bit}");
        }
        // An earlier version wrote no digest.
        let old = serde_json::to_vec_pretty(&record).unwrap();
        std::fs::write(place.path().join(RECORD), old).unwrap();
        assert_eq!(read(place.path()).unwrap(), record);
        for folder in ["../elsewhere", "/etc", ""] {
            let bad = SetFolders {
                sets: vec![SetFolder { folder: folder.to_owned(), capability_list: String::new() }],
            };
            std::fs::write(place.path().join(RECORD), serde_json::to_vec(&bad).unwrap()).unwrap();
            assert!(read(place.path()).unwrap_err().to_string().contains("help:"), "{folder}");
        }
    }
}
