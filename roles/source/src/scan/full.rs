//! Full scan: comparison of a folder with the log, by one ordered walk that is merged with the
//! resource table.
//!
//! Walk and table are both in byte order of keys. Memory therefore holds the names of the folders
//! on one path and a page of the table. A file with unchanged size, times and inode is not read.
//! Deletions are recorded at the end, unless the guard holds them.

use crate::links::{fingerprint_with, same_as_seen};
use crate::names::aliases::{Alias, MAX_ALIASES};
use crate::names::keys::{
    MAX_KEY, MAX_PATH, is_published_name, is_published_path, key_of, path_of,
};
use crate::names::naming::Naming;
use crate::names::path_state::{PathState, inspect};
use crate::scan::guard::Lost;
use crate::scan::guard::{Deletions, Held};
use crate::scan::hash::Reading;
use crate::scan::ingest::{Closed, IngestReport, Sink, Work, ingest, ingest_now};
use crate::scan::options::IngestOptions;
use abreast_core::{ChangeLog, Imported, KeyRange, LogError, SetId, State};
use abreast_folder::{Dir, ErrorKind, Folder, Kind};
use abreast_net::TRACE;
use abreast_webtypes::Link;
use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;

/// Rows of the resource table in memory at a time.
const PAGE: usize = 4_096;
/// Most folders that the walk has open. Outer folders are reopened by path when the walk returns.
const OPEN_FOLDERS: usize = 64;
/// Most symbolic links to folders on a path, because links between a few folders could otherwise
/// produce an unlimited number of paths.
const MAX_LINKS: usize = 4;
/// Deletions that are recorded in one step.
const DELETE: usize = 5_000;

/// Options of a full or partial scan.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// Options for reading and recording files.
    pub ingest: IngestOptions,
    /// Whether to read files with unchanged metadata.
    pub read_all: bool,
    /// Relative paths of files that are being written, whose recorded state does not change.
    pub held: HashSet<Vec<u8>>,
    /// Rule for resources whose files are missing.
    pub deletions: Deletions,
}

/// Numbers and unfinished work of a scan.
#[derive(Debug, Default)]
pub struct ScanReport {
    /// Number of published files in the folder.
    pub files: u64,
    /// Number of resources whose files are missing.
    pub gone: u64,
    /// Number of symbolic links that were not followed: all links, or the links to hidden names,
    /// missing files or paths outside the folder, and circular links.
    pub links: u64,
    /// Result of reading and recording the files.
    pub ingest: IngestReport,
    /// Deletions that the guard holds, which are not recorded.
    pub held: Option<Held>,
    /// Keys of some of the resources whose deletion is held.
    pub(crate) held_names: Vec<String>,
    /// Resources whose deletion is not yet recorded.
    pub(crate) lost: Lost,
    /// Paths of files that replaced a folder whose resources are still in the log. The watch reads
    /// these files after the deletion of those resources.
    pub(crate) replaced: Vec<Vec<u8>>,
    /// Whether the whole folder is empty, although the set has resources.
    pub(crate) emptied: bool,
    /// Symbolic links that were followed, up to a limit.
    pub(crate) aliases: Vec<Alias>,
}

/// Reason why a scan is incomplete.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The folder cannot be read, or is unexpectedly empty. No deletion was recorded.
    #[error("{0}")]
    Vanished(String),
    /// The change log failed during the scan.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The owner of the scan stopped it.
    #[error("stopped before the scan was complete")]
    Stopped,
}

/// Scans a folder and records the changes. `subtree` is the relative path of the subfolder to scan;
/// empty for the whole folder.
///
/// # Errors
/// See [`ScanError`]. Changes that are already recorded remain, and a later scan continues from
/// there.
pub fn scan(
    folder: &Folder,
    subtree: &[u8],
    log: &dyn ChangeLog,
    set: SetId,
    options: &ScanOptions,
    stop: &AtomicBool,
) -> Result<ScanReport, ScanError> {
    let reading = Reading { stop, aside: None, asks_writers: true, empty: Duration::ZERO };
    scan_reading(folder, subtree, log, set, options, reading)
}

/// Runs [`scan`] with additional settings for reading files.
pub(crate) fn scan_reading(
    folder: &Folder,
    subtree: &[u8],
    log: &dyn ChangeLog,
    set: SetId,
    options: &ScanOptions,
    reading: Reading<'_>,
) -> Result<ScanReport, ScanError> {
    let span = tracing::debug_span!(target: TRACE, "scan", set = set.0);
    let _entered = span.enter();
    if !subtree.is_empty() {
        return scan_counted(folder, subtree, log, set, options, reading);
    }
    let meter = &options.ingest.meter;
    meter.begin("scanning");
    let result = scan_counted(folder, subtree, log, set, options, reading);
    meter.end();
    result
}

fn scan_counted(
    folder: &Folder,
    subtree: &[u8],
    log: &dyn ChangeLog,
    set: SetId,
    options: &ScanOptions,
    reading: Reading<'_>,
) -> Result<ScanReport, ScanError> {
    let before = log.head(set)?;
    let mut report = walk(folder, subtree, log, set, options, reading)?;
    if before.takes_base() {
        // An import only adds resources. A scan after the import detects missing files.
        return Ok(report);
    }
    let lost = std::mem::take(&mut report.lost);
    if let Deletions::Guarded { peak } = options.deletions {
        let (now, before) =
            (log.head(set)?.resources, if peak == 0 { before.resources } else { peak });
        report.held = Held::judge(&lost, now, before, report.emptied);
    }
    if report.held.is_some() {
        report.held_names = lost.first;
        report.ingest.deferred.append(&mut report.replaced);
    } else if lost.too_many() {
        let options = ScanOptions { deletions: Deletions::Confirmed, ..options.clone() };
        report.ingest.add(walk(folder, subtree, log, set, &options, reading)?.ingest);
    } else {
        report.ingest.add(delete(folder, log, set, &options.ingest, reading, lost.keys)?);
    }
    let replaced = std::mem::take(&mut report.replaced);
    if !replaced.is_empty() {
        let ingested = ingest(log, set, &options.ingest, reading, |sink| {
            replaced.into_iter().try_for_each(|path| {
                sink.begin();
                let PathState::File(dir) = inspect(folder, &path) else { return Ok(()) };
                let links = links_of(folder, &options.ingest, &path).0;
                sink.push(Work::Check { key: key_of(&path), path, dir, links })
            })
        });
        report.ingest.add(ingested?.1);
    }
    Ok(report)
}

/// Records the deletion of resources whose files are still missing.
pub(crate) fn delete(
    folder: &Folder,
    log: &dyn ChangeLog,
    set: SetId,
    options: &IngestOptions,
    reading: Reading<'_>,
    keys: Vec<String>,
) -> Result<IngestReport, LogError> {
    let mut report = IngestReport::default();
    let mut keys = keys.into_iter().peekable();
    while keys.peek().is_some() && !reading.stop.load(Ordering::Relaxed) {
        let writes = options.writes.count();
        let mut work = Vec::new();
        for key in keys.by_ref().take(DELETE) {
            let path = path_of(&key);
            match inspect(folder, &path) {
                PathState::File(_) if is_published_path(&path) => report.deferred.push(path),
                PathState::File(_)
                | PathState::Folder
                | PathState::LeftOut
                | PathState::Nothing => {
                    work.push(Work::Gone { key });
                }
                PathState::Unreadable(error) => report.problem(&path, &error),
            }
        }
        report.add(ingest_now(log, set, options, reading, writes, work, || |_: &[u8]| false)?);
    }
    Ok(report)
}

/// Compares a folder with the log, and records new and changed files. Deletions are only recorded
/// if they are confirmed; otherwise they are in the report.
pub(crate) fn walk(
    folder: &Folder,
    subtree: &[u8],
    log: &dyn ChangeLog,
    set: SetId,
    options: &ScanOptions,
    reading: Reading<'_>,
) -> Result<ScanReport, ScanError> {
    let importing = log.head(set)?.takes_base();
    let walked = ingest(log, set, &options.ingest, reading, |sink| {
        let known = KnownResources::new(log, set, subtree);
        let report = ScanReport::default();
        let mut walk = Walk { folder, known, sink, stop: reading.stop, options, importing, report };
        walk.run(subtree).map(|()| walk.report)
    });
    let (walked, mut ingested) = walked?;
    let mut report = walked?;
    if !importing {
        report.lost.add_known(log, set, std::mem::take(&mut ingested.gone))?;
    }
    report.ingest.add(ingested);
    Ok(report)
}

struct Walk<'a> {
    folder: &'a Folder,
    known: KnownResources<'a>,
    sink: &'a mut Sink,
    stop: &'a AtomicBool,
    options: &'a ScanOptions,
    importing: bool,
    report: ScanReport,
}

/// A folder on the path from the published folder to the current position of the walk.
struct Frame {
    path: Vec<u8>,
    dir: Option<Dir>,
    /// Path of the folder without symbolic links, if links are followed, and the number of links on
    /// its path.
    real: Option<Vec<u8>>,
    links: usize,
    names: Names,
    is_hidden: bool,
}

/// Names that are still to be visited in a folder. A folder can have a million names, so they share
/// one buffer.
#[derive(Default)]
struct Names {
    /// Names in the encoding of keys, which determines the order. Names of folders end in `/`.
    text: String,
    /// Start and length of each name in `text`. The last name is visited first.
    places: Vec<(usize, u16, Kind)>,
}

impl Names {
    /// Adds a name of at most 255 bytes.
    fn push(&mut self, name: &[u8], kind: Kind) {
        let start = self.text.len();
        abreast_webtypes::encode_segment(name, &mut self.text);
        if kind == Kind::Folder {
            self.text.push('/');
        }
        self.places.push((start, (self.text.len() - start) as u16, kind));
    }

    fn sort(&mut self) {
        let text = self.text.as_bytes();
        let name = |place: &(usize, u16, Kind)| &text[place.0..place.0 + usize::from(place.1)];
        self.places.sort_unstable_by(|one, two| name(two).cmp(name(one)));
        self.places.shrink_to_fit();
    }

    fn pop(&mut self) -> Option<(Vec<u8>, Kind)> {
        let (start, length, kind) = self.places.pop()?;
        let name = &self.text.as_bytes()[start..start + usize::from(length)];
        Some((abreast_webtypes::decode_segment(name.strip_suffix(b"/").unwrap_or(name)), kind))
    }
}

/// The folders that contain a subtree.
#[derive(Default)]
struct Outer {
    real: Vec<Vec<u8>>,
    links: usize,
}

impl From<Closed> for ScanError {
    fn from(_: Closed) -> Self {
        // Recording failed, and the error of the recording replaces this one.
        Self::Stopped
    }
}

impl Walk<'_> {
    fn run(&mut self, subtree: &[u8]) -> Result<(), ScanError> {
        let at_root = subtree.is_empty();
        if self.folder.hidden_folder(subtree, Kind::Folder).is_some() {
            return self.rest_is_gone();
        }
        let root = match self.open(subtree) {
            Ok(Some(frame)) => frame,
            Ok(None) if !at_root => return self.rest_is_gone(),
            Ok(None) => return Err(self.vanished("it is not there")),
            Err(error) if at_root => return Err(self.vanished(&error)),
            Err(error) => {
                self.report.ingest.problem(subtree, &error);
                return Ok(());
            }
        };
        self.report.emptied =
            at_root && root.names.places.is_empty() && self.known.peek()?.is_some();
        let outer = self.outer_folders(subtree);
        let mut stack = vec![Frame { links: outer.links, ..root }];
        while let Some(frame) = stack.last_mut() {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ScanError::Stopped);
            }
            let Some((name, kind)) = frame.names.pop() else {
                stack.pop();
                continue;
            };
            let path = joined(&frame.path, &name);
            if path.len() > MAX_PATH {
                self.report
                    .ingest
                    .refused(&path, &format!("its path is longer than {MAX_PATH} bytes"));
                self.skip(&path, kind)?;
                continue;
            }
            // The folder that contains this name is not hidden: see below.
            if !self.folder.rules_select(&path, kind) {
                continue;
            }
            if kind == Kind::Folder {
                match self.open(&path) {
                    Ok(Some(inner)) if inner.is_hidden => {}
                    Ok(Some(mut inner)) => {
                        if let (Some(real), Some(from)) = (&inner.real, &frame.real) {
                            let linked = *real != joined(from, &name);
                            inner.links = frame.links + usize::from(linked);
                            let circle = || {
                                stack.iter().any(|outer| outer.real == inner.real)
                                    || outer.real.contains(real)
                            };
                            if linked && (inner.links > MAX_LINKS || circle()) {
                                self.report.links += 1;
                                continue;
                            }
                            if linked && self.report.aliases.len() < MAX_ALIASES {
                                self.report.aliases.push((path.clone(), real.clone()));
                            }
                        }
                        self.sink.next_folder()?;
                        if stack.len() >= OPEN_FOLDERS
                            && let Some(outer) = stack.last_mut()
                        {
                            outer.dir = None;
                        }
                        stack.push(inner);
                    }
                    Ok(None) => {}
                    Err(error) => {
                        self.report.ingest.problem(&path, &error);
                        self.skip(&path, kind)?;
                    }
                }
            } else {
                let dir = match &frame.dir {
                    Some(dir) => dir.clone(),
                    None => match self.folder.dir(components(&frame.path)) {
                        Ok(dir) => frame.dir.insert(dir).clone(),
                        Err(error) => {
                            let path = frame.path.clone();
                            self.report.ingest.problem(&path, &error);
                            frame.names = Names::default();
                            self.skip(&path, Kind::Folder)?;
                            continue;
                        }
                    },
                };
                if self.report.aliases.len() < MAX_ALIASES
                    && let Some(real) = dir.link_target(&name)
                {
                    self.report.aliases.push((path.clone(), real));
                }
                self.file(path, &name, dir)?;
            }
        }
        self.rest_is_gone()
    }

    /// Lists a folder; `None` if the folder does not exist.
    fn open(&mut self, path: &[u8]) -> Result<Option<Frame>, String> {
        let dir = match self.folder.dir(components(path)) {
            Ok(dir) => dir,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::NotFolder | ErrorKind::Symlink
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error.to_string()),
        };
        let mut names = Names::default();
        let mut is_marked = false;
        for entry in dir.entries().map_err(|error| error.to_string())? {
            let entry = entry.map_err(|error| error.to_string())?;
            self.options.ingest.links.saw(&entry.name);
            is_marked |= self.folder.is_mark(&entry.name);
            if !is_published_name(&entry.name) || !matches!(entry.kind, Kind::File | Kind::Folder) {
                self.report.links +=
                    u64::from(is_published_name(&entry.name) && entry.kind == Kind::Symlink);
                continue;
            }
            names.push(&entry.name, entry.kind);
        }
        names.sort();
        let real = self.folder.real_path(&dir);
        let is_hidden = self.folder.hides(&dir, path, is_marked);
        Ok(Some(Frame { path: path.to_vec(), dir: Some(dir), real, links: 0, names, is_hidden }))
    }

    /// Returns the paths, without symbolic links, of the folders that contain a subtree, if links
    /// are followed.
    fn outer_folders(&self, subtree: &[u8]) -> Outer {
        let mut outer = Outer::default();
        let mut path = Vec::new();
        for name in components(subtree) {
            let Some(real) =
                self.folder.dir(components(&path)).ok().and_then(|dir| self.folder.real_path(&dir))
            else {
                return outer;
            };
            path = joined(&path, name);
            let inner =
                self.folder.dir(components(&path)).ok().and_then(|dir| self.folder.real_path(&dir));
            outer.links += usize::from(inner.is_some_and(|inner| inner != joined(&real, name)));
            outer.real.push(real);
        }
        outer
    }

    fn file(&mut self, path: Vec<u8>, name: &[u8], dir: Dir) -> Result<(), ScanError> {
        let key = key_of(&path);
        if key.len() > MAX_KEY {
            self.report.ingest.refused(&path, &format!("its URI is longer than {MAX_KEY} bytes"));
            return Ok(());
        }
        self.options.ingest.meter.add(1, 0);
        self.gone_before(&key)?;
        self.sink.begin();
        let links = self.links_of(&path);
        if self.known.peek()?.is_some_and(|known| known.key == key) {
            let stat = match dir.stat(name) {
                Ok(stat) if stat.kind == Kind::File => stat,
                // Deleted since the folder was listed: the merge handles the resource.
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) => {
                    self.report.ingest.problem(&path, &error);
                    return self.skip(&path, Kind::File);
                }
            };
            let known = self.known.peek()?;
            let (same_file, same_links) =
                known.map_or((false, false), |known| same_as_seen(&known.witness, &stat, &links));
            // A file is read again if its bytes must be stored and the store does not have them.
            let kept =
                self.options.ingest.contents.is_none() || known.is_some_and(|known| known.kept);
            self.known.advance();
            self.report.ingest.shares(&path, &stat);
            if same_file && kept && !self.options.read_all {
                self.report.files += 1;
                if !same_links && let Some(known) = self.known.log.resource(self.known.set, &key)? {
                    let witness = fingerprint_with(&stat, &links);
                    let state = State { links, ..known.state };
                    self.sink.push(Work::Relink(Box::new(Imported { key, state, witness })))?;
                }
                return Ok(());
            }
        } else if !self.importing && is_folder(self.known.log, self.known.set, &key)? {
            self.report.files += 1;
            self.report.replaced.push(path);
            return Ok(());
        }
        self.report.files += 1;
        if !self.options.held.contains(&path) {
            self.sink.push(Work::Check { key, path, dir, links })?;
        }
        Ok(())
    }

    /// Returns the current links of a file, and reports a problem with its sidecar.
    fn links_of(&mut self, path: &[u8]) -> Vec<Link> {
        let (links, problem) = links_of(self.folder, &self.options.ingest, path);
        if let Some(problem) = problem {
            self.report.ingest.problem_of(problem);
        }
        links
    }

    /// Skips the resources of a file or folder that cannot be read now, so that their state does
    /// not change.
    fn skip(&mut self, path: &[u8], kind: Kind) -> Result<(), ScanError> {
        let mut key = key_of(path);
        if kind == Kind::Folder {
            key.push('/');
        }
        self.gone_before(&key)?;
        while let Some(known) = self.known.peek()? {
            let concerned =
                if kind == Kind::Folder { known.key.starts_with(&key) } else { known.key == key };
            if !concerned {
                break;
            }
            self.known.advance();
        }
        Ok(())
    }

    fn gone_before(&mut self, key: &str) -> Result<(), ScanError> {
        while let Some(known) = self.known.peek()? {
            if known.key.as_str() >= key {
                break;
            }
            let key = known.key.clone();
            self.known.advance();
            self.gone(key)?;
        }
        Ok(())
    }

    fn rest_is_gone(&mut self) -> Result<(), ScanError> {
        while let Some(known) = self.known.peek()? {
            let key = known.key.clone();
            self.known.advance();
            self.gone(key)?;
        }
        Ok(())
    }

    /// Handles a resource whose file was not listed. The file is missing only if opening its path
    /// also fails, because a listing may omit a file that is being replaced.
    fn gone(&mut self, key: String) -> Result<(), ScanError> {
        let path = path_of(&key);
        self.sink.begin();
        match inspect(self.folder, &path) {
            PathState::File(dir) if is_published_path(&path) => {
                self.report.files += 1;
                if !self.options.held.contains(&path) {
                    let links = self.links_of(&path);
                    self.sink.push(Work::Check { key, path, dir, links })?;
                }
            }
            PathState::Unreadable(error) => self.report.ingest.problem(&path, &error),
            found @ (PathState::File(_)
            | PathState::Folder
            | PathState::LeftOut
            | PathState::Nothing) => {
                self.report.gone += 1;
                // A file that was replaced by a folder is not judged by the guard.
                if self.options.deletions == Deletions::Confirmed
                    || matches!(found, PathState::Folder)
                {
                    self.sink.push(Work::Gone { key })?;
                } else if !self.importing {
                    self.report.lost.left_out += u64::from(matches!(found, PathState::LeftOut));
                    self.report.lost.push(key);
                }
            }
        }
        Ok(())
    }

    fn vanished(&self, reason: &str) -> ScanError {
        ScanError::Vanished(format!("cannot scan `{}`: {reason}", self.folder.path().display()))
    }
}

/// Returns the current links of a file, and the problem with its sidecar.
fn links_of(folder: &Folder, options: &IngestOptions, path: &[u8]) -> (Vec<Link>, Option<String>) {
    if !options.links.active() {
        return (Vec::new(), None);
    }
    let found = options.links.of(folder, path);
    (found.links, found.problem)
}

/// Whether the log has resources below this key.
pub(crate) fn is_folder(log: &dyn ChangeLog, set: SetId, key: &str) -> Result<bool, LogError> {
    let mut found = false;
    log.scan(set, &beneath(key), &mut |_| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Returns the range of keys below the key of a folder.
pub(crate) fn beneath(key: &str) -> KeyRange {
    // The byte after `/` is `0`.
    KeyRange { start: format!("{key}/"), end: Some(format!("{key}0")) }
}

fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(path.len() + name.len() + 1);
    joined.extend_from_slice(path);
    if !path.is_empty() {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
}

struct Known {
    key: String,
    witness: Vec<u8>,
    /// Whether the store has a copy of the bytes.
    kept: bool,
}

/// Iterator over the resource table in key order, which reads a page at a time.
struct KnownResources<'a> {
    log: &'a dyn ChangeLog,
    set: SetId,
    range: KeyRange,
    page: VecDeque<Known>,
    ended: bool,
}

impl<'a> KnownResources<'a> {
    fn new(log: &'a dyn ChangeLog, set: SetId, subtree: &[u8]) -> Self {
        let range =
            if subtree.is_empty() { KeyRange::default() } else { beneath(&key_of(subtree)) };
        Self { log, set, range, page: VecDeque::new(), ended: false }
    }

    fn peek(&mut self) -> Result<Option<&Known>, LogError> {
        while self.page.is_empty() && !self.ended {
            let page = &mut self.page;
            // Keys with a colon are URIs of resources on other servers, not files.
            self.log.scan(self.set, &self.range, &mut |resource| {
                page.push_back(Known {
                    key: resource.key.clone(),
                    witness: resource.witness.clone(),
                    kept: resource.state.content.is_some(),
                });
                if page.len() >= PAGE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            self.ended = page.len() < PAGE;
            if let Some(last) = page.back() {
                self.range.start = format!("{}\0", last.key);
            }
            page.retain(|known| Naming::is_own(&known.key));
        }
        Ok(self.page.front())
    }

    fn advance(&mut self) {
        self.page.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_core::{Change, NewSet, Position, State, SystemClock};
    use std::sync::Arc;

    #[test]
    fn a_file_that_a_listing_passed_over_is_not_deleted() {
        let place = tempfile::tempdir().unwrap();
        let log = abreast_store::SqliteLog::open(&place.path().join("db"), Arc::new(SystemClock))
            .unwrap();
        let set = log.open_set(&NewSet { slug: "set".into(), ..NewSet::default() }).unwrap().id;
        log.complete_import(set).unwrap();
        let puts = ["d/e/here", "d/e/gone"].map(|key| Change::put(key, State::default()));
        abreast_core::append(&log, set, puts.into()).unwrap();
        std::fs::create_dir_all(place.path().join("d/e")).unwrap();
        std::fs::write(place.path().join("d/e/here"), "").unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let (stop, options) = (
            AtomicBool::new(false),
            ScanOptions { deletions: Deletions::Confirmed, ..ScanOptions::default() },
        );
        let reading =
            Reading { stop: &stop, aside: None, asks_writers: false, empty: Duration::ZERO };
        let walked = ingest(&log, set, &options.ingest, reading, |sink| {
            let known = KnownResources::new(&log, set, b"d/e");
            let report = ScanReport::default();
            let mut walk = Walk {
                folder: &folder,
                known,
                sink,
                stop: &stop,
                options: &options,
                importing: false,
                report,
            };
            walk.rest_is_gone().map(|()| walk.report)
        });
        let report = walked.unwrap().0.unwrap();
        assert_eq!((report.files, report.gone), (1, 1));
        assert_eq!(log.head(set).unwrap().position, Position(3), "one deletion");
        assert!(log.resource(set, "d/e/here").unwrap().is_some());
    }
}
