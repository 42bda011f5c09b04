//! The differences between a folder and what the log knows of it: one ordered walk, merged with the
//! resource table.
//!
//! Both run in byte order of the keys, so memory holds one folder's names and one page of the
//! table, and a file whose size, times and inode are as before is not read. Deletions are recorded
//! last, unless the guard holds them.

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
use abreast_webtypes::Link;
use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;

/// Rows of the resource table in memory at a time.
const PAGE: usize = 4_096;
/// Deeper folders are reopened by path when the walk comes back to them.
const OPEN_FOLDERS: usize = 64;
/// Links to folders on one path; a few folders full of links to each other would make paths without
/// end.
const MAX_LINKS: usize = 4;
/// Deletions recorded in one go.
const DELETE: usize = 5_000;

/// The options of a scan.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// The options for reading and recording files.
    pub ingest: IngestOptions,
    /// Read every file, also those that seem unchanged.
    pub read_all: bool,
    /// Relative paths that are being written: their recorded state remains.
    pub held: HashSet<Vec<u8>>,
    /// The treatment of resources whose files are gone.
    pub deletions: Deletions,
}

/// The result of a scan.
#[derive(Debug, Default)]
pub struct ScanReport {
    /// Published files seen.
    pub files: u64,
    /// Resources whose file is gone.
    pub gone: u64,
    /// Symbolic links not followed: all of them, or those that lead outside, to hidden names,
    /// nowhere or in a circle.
    pub links: u64,
    /// The result of the files that were read.
    pub ingest: IngestReport,
    /// Deletions that were not recorded, since the guard holds them.
    pub held: Option<Held>,
    /// Resources whose deletion is not recorded yet.
    pub(crate) lost: Lost,
    /// Files that stand where a folder was, whose resources are still known: read after those are
    /// deleted.
    pub(crate) replaced: Vec<Vec<u8>>,
    /// The whole folder holds nothing to publish, though resources were published from it.
    pub(crate) emptied: bool,
    /// Symbolic links that were followed, up to a limit.
    pub(crate) aliases: Vec<Alias>,
}

/// The reason why a scan did not complete.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The folder itself cannot be read, or is suddenly empty. Nothing was deleted from the log.
    #[error("{0}")]
    Vanished(String),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Stopped by its owner.
    #[error("stopped before the scan was complete")]
    Stopped,
}

/// Scans a folder, or one folder beneath it (`subtree`, a relative path; empty for all), and
/// records what changed.
///
/// # Errors
/// See [`ScanError`]. Changes recorded before remain; a later scan continues from there.
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

/// As [`scan`], with these settings for reading files.
pub(crate) fn scan_reading(
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
        // An import only adds; what is gone is found when it is complete.
        return Ok(report);
    }
    let lost = std::mem::take(&mut report.lost);
    if let Deletions::Guarded { peak } = options.deletions {
        let (now, before) =
            (log.head(set)?.resources, if peak == 0 { before.resources } else { peak });
        report.held = Held::judge(&lost, now, before, report.emptied);
    }
    if report.held.is_some() {
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

/// Records the deletion of resources whose files are still gone.
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

/// Compares a folder with the log and records what is new or different. Deletions are recorded only
/// when they are confirmed; else those that would be are in the report.
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

/// A folder on the way from the root to where the walk is.
struct Frame {
    path: Vec<u8>,
    dir: Option<Dir>,
    /// Its own path, if links are followed, and the number of links to folders on the way.
    real: Option<Vec<u8>>,
    links: usize,
    names: Names,
    is_hidden: bool,
}

/// The names still to visit in a folder. A folder may hold a million names: they share one buffer.
#[derive(Default)]
struct Names {
    /// The names as they stand in keys, which gives their order; those of folders end in `/`.
    text: String,
    /// The start and length of each; the last is visited first.
    places: Vec<(usize, u16, Kind)>,
}

impl Names {
    /// `name` has at most 255 bytes.
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

/// The folders around a subtree.
#[derive(Default)]
struct Outer {
    real: Vec<Vec<u8>>,
    links: usize,
}

impl From<Closed> for ScanError {
    fn from(_: Closed) -> Self {
        // The recording failed; its own error takes the place of this one.
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
            // The folder that it is in is not hidden: see below.
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

    /// Lists a folder; `None` when it is not there (any more).
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

    /// The own paths of the folders on the way to a subtree, if links are followed.
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
        self.gone_before(&key)?;
        self.sink.begin();
        let links = self.links_of(&path);
        if self.known.peek()?.is_some_and(|known| known.key == key) {
            let stat = match dir.stat(name) {
                Ok(stat) if stat.kind == Kind::File => stat,
                // Gone since the folder was listed: left to the merge.
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
            // Read again where its bytes are to be kept and are not.
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

    /// The links of a file as it is now.
    fn links_of(&mut self, path: &[u8]) -> Vec<Link> {
        let (links, problem) = links_of(self.folder, &self.options.ingest, path);
        if let Some(problem) = problem {
            self.report.ingest.problem_of(problem);
        }
        links
    }

    /// Leaves what is known of a file or folder as it is, since it cannot be read now.
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

    /// A resource whose file no listing named. Gone is what is not there when asked for by its
    /// name.
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
                // What a folder took the place of is replaced rather than lost.
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

/// The links of a file as it is now, and what is wrong with them.
fn links_of(folder: &Folder, options: &IngestOptions, path: &[u8]) -> (Vec<Link>, Option<String>) {
    if !options.links.active() {
        return (Vec::new(), None);
    }
    let found = options.links.of(folder, path);
    (found.links, found.problem)
}

/// Does the log know resources beneath this key?
pub(crate) fn is_folder(log: &dyn ChangeLog, set: SetId, key: &str) -> Result<bool, LogError> {
    let mut found = false;
    log.scan(set, &beneath(key), &mut |_| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// The keys beneath that of a folder.
pub(crate) fn beneath(key: &str) -> KeyRange {
    // `0` is the byte after `/`.
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
    /// Whether a copy of its bytes is kept.
    kept: bool,
}

/// The resource table in key order, a page at a time.
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
            // Keys with a colon are URIs of resources that live elsewhere, not files.
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
