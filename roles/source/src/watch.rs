//! When does a folder change? inotify events are hints; a scan is the truth.
//!
//! A path that had an event is looked at when it has been quiet for the debounce time and nobody is known to be
//! writing it. Whenever events may have been lost, and every hour anyway, the whole folder is scanned.

use crate::aliases::Aliases;
use crate::events::{Events, Hint};
use crate::found::{Found, look_for};
use crate::ingest::{IngestOptions, IngestReport, Sink, Work, ingest};
use crate::links::{owner_of, same_as_seen, witness_with};
use crate::names::{is_published_path, key_of, path_of, too_long};
use crate::scan::{ScanError, ScanOptions, ScanReport, scan};
use crate::status::{WatchState, WatchStatus};
use abreast_core::{ChangeLog, Clock as _, Imported, KeyRange, LogError, SetId, State, SystemClock};
use abreast_folder::Folder;
use abreast_webtypes::Link;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Paths waiting to settle; more are answered by a scan.
const MAX_DIRTY: usize = 50_000;
/// Resources of a vanished folder read at a time.
const BENEATH: usize = 4_096;
/// Paths looked at in one go.
const MAX_READY: usize = 5_000;
/// A path that never comes to rest is looked at after this long, if nobody is known to be writing it.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// How long a written file may stay unclosed and quiet before it is taken as it is.
const UNCLOSED: Duration = Duration::from_secs(60);
/// The same for a file that was created and not written yet.
const UNWRITTEN: Duration = Duration::from_secs(2);
/// A file that was touched less than this ago is left alone.
const INSTANT: Duration = Duration::from_millis(20);
/// How often it is looked whether the folder is still the same, and one that cannot be read is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// How often the thread looks whether it should stop.
const TICK: Duration = Duration::from_millis(200);

/// How a folder is watched.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The folder.
    pub folder: PathBuf,
    /// How files are taken in.
    pub ingest: IngestOptions,
    /// A path is looked at when it was quiet for this long.
    pub debounce: Duration,
    /// Time between full scans; zero for none but the first.
    pub rescan: Duration,
    /// Time between scans that read every file, also those that look unchanged; zero for none.
    pub reread: Duration,
    /// Use inotify? Without it only scans find changes (network file systems).
    pub events: bool,
    /// Follow relative symbolic links that lead to something published beneath the folder?
    pub follow_links: bool,
}

impl WatchOptions {
    /// The defaults for a folder: debounce 200 ms, a full scan each hour, events used.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            ingest: IngestOptions::default(),
            debounce: Duration::from_millis(200),
            rescan: Duration::from_secs(3_600),
            reread: Duration::ZERO,
            events: true,
            follow_links: false,
        }
    }
}

/// A running watch; stops when told, or when dropped.
pub struct Watch {
    stop: Arc<AtomicBool>,
    status: Arc<WatchStatus>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts watching. The first scan runs in the background; see [`WatchStatus`].
    pub fn start(options: WatchOptions, log: Arc<dyn ChangeLog>, set: SetId) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let status = Arc::new(WatchStatus::default());
        let aliases = Aliases::default();
        let watching = Watching { options, log, set, stop: Arc::clone(&stop), status: Arc::clone(&status), aliases };
        let thread = thread::Builder::new().name("watch".into()).spawn(move || watching.run());
        if let Err(error) = &thread {
            status.set(WatchState::Vanished(format!("cannot start the watching thread: {error}")));
        }
        Self { stop, status, thread: thread.ok() }
    }

    /// How it is going.
    pub fn status(&self) -> &Arc<WatchStatus> {
        &self.status
    }

    /// Stops after what is being recorded is durable.
    pub fn stop(mut self) {
        self.join();
    }

    fn join(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.join();
    }
}

/// A path that had an event.
#[derive(Clone, Copy)]
struct Dirty {
    first: Instant,
    last: Instant,
    writing: Writing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    /// Nobody, as far as events tell.
    No,
    /// Created by somebody who has not closed it.
    Created,
    /// Written by somebody who has not closed it.
    Written,
}

impl Dirty {
    fn due(&self, debounce: Duration) -> Instant {
        match self.writing {
            Writing::No => (self.last + debounce).min(self.first + MAX_DELAY.max(debounce)),
            Writing::Created => self.last + UNWRITTEN,
            Writing::Written => self.last + UNCLOSED,
        }
    }
}

struct Watching {
    options: WatchOptions,
    log: Arc<dyn ChangeLog>,
    set: SetId,
    stop: Arc<AtomicBool>,
    status: Arc<WatchStatus>,
    aliases: Aliases,
}

/// Why a round of watching ended.
enum Ended {
    Stopped,
    Vanished(String),
}

impl From<ScanError> for Ended {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Stopped => Self::Stopped,
            other => Self::Vanished(other.to_string()),
        }
    }
}

impl From<LogError> for Ended {
    fn from(error: LogError) -> Self {
        Self::Vanished(format!("the store failed: {error}"))
    }
}

impl Watching {
    fn run(self) {
        while !self.stopping() {
            match self.watch_once() {
                Ended::Stopped => break,
                Ended::Vanished(reason) => {
                    tracing::error!(folder = %self.options.folder.display(), "{reason}; nothing is deleted, trying again");
                    self.status.set(WatchState::Vanished(reason));
                    let until = Instant::now() + RETRY;
                    while Instant::now() < until && !self.stopping() {
                        thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
                    }
                }
            }
        }
        self.status.set(WatchState::Stopped);
    }

    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Watches until told to stop or the folder vanishes.
    fn watch_once(&self) -> Ended {
        match self.try_watch() {
            Ok(never) => match never {},
            Err(ended) => ended,
        }
    }

    fn try_watch(&self) -> Result<std::convert::Infallible, Ended> {
        let root = std::fs::canonicalize(&self.options.folder)
            .map_err(|error| Ended::Vanished(format!("cannot open `{}`: {error}", self.options.folder.display())))?;
        let folder = crate::names::open_folder(&root, self.options.follow_links)
            .map_err(|error| Ended::Vanished(error.to_string()))?;
        let mut events = self.events(&root);
        let mut dirty = HashMap::new();
        self.first_scan(&folder, &mut dirty)?;
        self.status.set_folder(&folder);
        let mut next_look = Instant::now() + RETRY;
        let mut next_scan = after(self.options.rescan);
        let mut next_reread = after(self.options.reread);
        loop {
            self.status.set(WatchState::Watching);
            let due = dirty.values().map(|path: &Dirty| path.due(self.options.debounce)).min();
            let wait = due.map_or(TICK, |due| due.saturating_duration_since(Instant::now()).min(TICK));
            match &mut events {
                Some(events) => events.read(wait, |path, hint| note(&mut dirty, self.subject(path), hint)),
                None => thread::sleep(wait),
            }
            if self.stopping() {
                return Err(Ended::Stopped);
            }
            let now = Instant::now();
            if now >= next_look {
                // No event tells that another folder took this one's place.
                self.check_root(&root, &folder)?;
                next_look = now + RETRY;
            }
            let read_all = next_reread.is_some_and(|at| now >= at);
            let lost = events.as_mut().is_some_and(Events::take_lost);
            if lost
                && let Some(events) = &mut events
                && let Err(error) = events.rewatch()
            {
                tracing::warn!(
                    folder = %root.display(),
                    "cannot watch all folders: {error}; only scans find changes in the others \
                     (help: raise fs.inotify.max_user_watches)"
                );
            }
            let overflow = lost || dirty.len() > MAX_DIRTY;
            if overflow || read_all || next_scan.is_some_and(|at| now >= at) {
                if overflow {
                    tracing::warn!(folder = %root.display(), "too many changes at once to follow one by one; scanning");
                }
                leave_to_scan(&mut dirty, self.options.debounce, now);
                self.check_root(&root, &folder)?;
                let held = written(&dirty);
                let report = self.full_scan(&folder, read_all, held)?;
                defer(&mut dirty, report.ingest.deferred);
                next_scan = after(self.options.rescan);
                if read_all {
                    next_reread = after(self.options.reread);
                }
                continue;
            }
            let mut ready: Vec<Vec<u8>> = dirty
                .iter()
                .filter(|(_, path)| path.due(self.options.debounce) <= now)
                .map(|(path, _)| path.clone())
                .take(MAX_READY)
                .collect();
            if ready.is_empty() {
                continue;
            }
            for path in &ready {
                dirty.remove(path);
            }
            // What stands there is published under other paths as well, if links lead to it.
            let others: Vec<_> = ready.iter().flat_map(|path| self.aliases.of(path)).collect();
            ready.extend(others);
            ready.sort_unstable();
            ready.dedup();
            self.check_root(&root, &folder)?;
            self.look_at(&folder, &ready, &mut dirty)?;
        }
    }

    fn events(&self, root: &Path) -> Option<Events> {
        if !self.options.events {
            return None;
        }
        let events = Events::start(root);
        if let Err(error) = &events {
            tracing::warn!(
                folder = %root.display(),
                "cannot watch for changes: {error}; only scans find them \
                 (help: raise fs.inotify.max_user_watches, or shorten the rescan interval)"
            );
        }
        events.ok()
    }

    /// The scan at the start; for a new set it builds the base.
    fn first_scan(&self, folder: &Folder, dirty: &mut HashMap<Vec<u8>, Dirty>) -> Result<(), Ended> {
        let importing = self.log.head(self.set)?.importing;
        let mut report = self.full_scan(folder, false, HashSet::new())?;
        if importing {
            // Files written just now belong to the base as well, once they have come to rest.
            let until = Instant::now() + Duration::from_secs(3);
            while !report.ingest.deferred.is_empty() && Instant::now() < until && !self.stopping() {
                thread::sleep(self.options.ingest.settle.min(TICK));
                let deferred = std::mem::take(&mut report.ingest.deferred);
                report.ingest.deferred = self.ingest_paths(folder, &deferred, self.options.ingest.settle)?.deferred;
            }
            self.log.complete_import(self.set)?;
            if report.gone > 0 {
                // An earlier import was interrupted, and files of it are gone since.
                report = self.full_scan(folder, false, HashSet::new())?;
            }
        }
        defer(dirty, report.ingest.deferred);
        Ok(())
    }

    fn full_scan(&self, folder: &Folder, read_all: bool, held: HashSet<Vec<u8>>) -> Result<ScanReport, Ended> {
        self.status.set(WatchState::Scanning);
        let options = ScanOptions { ingest: self.options.ingest.clone(), read_all, held };
        let begun = Instant::now();
        let mut report = scan(folder, b"", &*self.log, self.set, &options, &self.stop)?;
        self.aliases.replace(std::mem::take(&mut report.aliases));
        self.status.scanned(SystemClock.now(), report.ingest.problem_count);
        tell_problems(&report.ingest);
        tracing::info!(
            folder = %folder.path().display(),
            files = report.files,
            recorded = report.ingest.recorded,
            gone = report.gone,
            links_not_followed = report.links,
            seconds = begun.elapsed().as_secs_f64(),
            "scanned"
        );
        metrics::counter!("abreast_source_scans_total").increment(1);
        Ok(report)
    }

    /// Is the folder still the one that was opened? Deletions are believed only then.
    fn check_root(&self, root: &Path, folder: &Folder) -> Result<(), Ended> {
        use std::os::unix::fs::MetadataExt as _;
        let path = &self.options.folder;
        let gone = |reason: &dyn std::fmt::Display| Ended::Vanished(format!("`{}` vanished: {reason}", path.display()));
        let now = std::fs::metadata(root).map_err(|error| gone(&error))?;
        let opened = folder.root().own_stat().map_err(|error| gone(&error))?;
        if (now.dev(), now.ino()) != (opened.device, opened.inode) {
            return Err(gone(&"another folder has taken its place"));
        }
        Ok(())
    }

    /// Looks at paths that had events: files are read, folders scanned, what is gone is recorded as deleted.
    fn look_at(&self, folder: &Folder, ready: &[Vec<u8>], dirty: &mut HashMap<Vec<u8>, Dirty>) -> Result<(), Ended> {
        // They were quiet for the debounce time, or nobody has them open. An event of this moment may not have been read
        // yet: a file that is being written anew is empty for an instant.
        let report = self.ingest_paths(folder, ready, self.options.debounce.min(INSTANT))?;
        tell_problems(&report);
        if self.options.follow_links {
            self.aliases.add(ready.iter().filter_map(|path| Some((path.clone(), link_target(folder, path)?))));
        }
        defer(dirty, report.deferred);
        let mut held = None;
        let mut scanned: Option<&[u8]> = None;
        for path in ready {
            // Sorted: what lies beneath a folder just scanned follows it directly.
            let beneath = scanned
                .is_some_and(|outer| path.len() > outer.len() && path.starts_with(outer) && path[outer.len()] == b'/');
            if beneath || !is_published_path(path) || !matches!(look_for(folder, path), Found::Folder) {
                continue;
            }
            scanned = Some(path);
            let options = held.get_or_insert_with(|| ScanOptions {
                ingest: self.options.ingest.clone(),
                held: written(dirty),
                ..ScanOptions::default()
            });
            let report = scan(folder, path, &*self.log, self.set, options, &self.stop)?;
            self.aliases.add(report.aliases);
            tell_problems(&report.ingest);
            defer(dirty, report.ingest.deferred);
        }
        Ok(())
    }

    fn ingest_paths(&self, folder: &Folder, paths: &[Vec<u8>], settle: Duration) -> Result<IngestReport, Ended> {
        let options = IngestOptions { settle, ..self.options.ingest.clone() };
        let mut long = IngestReport::default();
        let (pushed, mut report) = ingest(&*self.log, self.set, &options, |sink| {
            for path in paths.iter().filter(|path| is_published_path(path)) {
                if self.stopping() {
                    break;
                }
                match too_long(path) {
                    Some(why) => long.problem(path, &why),
                    None => self.push_path(folder, path, sink)?,
                }
            }
            Ok::<_, ScanError>(())
        })?;
        pushed?;
        report.problem_count += long.problem_count;
        report.problems.append(&mut long.problems);
        Ok(report)
    }

    /// The path that an event concerns: that of a sidecar concerns its owner.
    fn subject(&self, path: Vec<u8>) -> Vec<u8> {
        let Some(owner) = owner_of(&path) else { return path };
        self.options.ingest.links.saw(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default());
        owner
    }

    /// The links of a file as it is now.
    fn links_of(&self, folder: &Folder, path: &[u8]) -> Vec<Link> {
        let policy = &self.options.ingest.links;
        if !policy.active() {
            return Vec::new();
        }
        let found = policy.of(folder, path);
        if let Some(problem) = found.problem {
            tracing::warn!("{problem}");
        }
        found.links
    }

    /// A file that is known as it is needs not be read again; what is said of it may still have changed.
    fn push_known(&self, folder: &Folder, key: &str, path: &[u8], sink: &mut Sink) -> Result<bool, ScanError> {
        let ingest = &self.options.ingest;
        // Who else could know of it before the watch?
        if !ingest.links.active() && ingest.writes.count() == 0 {
            return Ok(false);
        }
        let Some(known) = self.log.resource(self.set, key)? else { return Ok(false) };
        if ingest.contents.is_some() && known.state.content.is_none() {
            return Ok(false);
        }
        let Ok((_, stat)) = folder.open_file(path) else { return Ok(false) };
        let links = self.links_of(folder, path);
        let (same_file, same_links) = same_as_seen(&known.witness, &stat, &links);
        if same_file && !same_links {
            let witness = witness_with(&stat, &links);
            let state = State { links, ..known.state };
            sink.push(Work::Relink(Imported { key: key.to_owned(), state, witness }))?;
        }
        Ok(same_file)
    }

    /// Resources that link to this path only while something is there.
    fn push_sources(&self, folder: &Folder, path: &[u8], sink: &mut Sink) -> Result<(), ScanError> {
        for key in self.options.ingest.links.sources_of(&*self.log, self.set, path)? {
            self.push_known(folder, &key, &path_of(&key), sink)?;
        }
        Ok(())
    }

    fn push_path(&self, folder: &Folder, path: &[u8], sink: &mut Sink) -> Result<(), ScanError> {
        sink.begin();
        self.push_sources(folder, path, sink)?;
        let found = look_for(folder, path);
        let key = key_of(path);
        match found {
            Found::Folder => return Ok(sink.push(Work::Gone { key })?),
            Found::File(dir) => {
                if !self.push_known(folder, &key, path, sink)? {
                    let links = self.links_of(folder, path);
                    sink.push(Work::Check { key: key.clone(), path: path.to_vec(), dir, links })?;
                }
            }
            Found::Nothing => sink.push(Work::Gone { key: key.clone() })?,
            Found::Unreadable(_) => return Ok(()),
        }
        // It is no folder (any more): whatever was known beneath it is gone.
        let mut range = KeyRange { start: format!("{key}/"), end: Some(format!("{key}0")) };
        loop {
            let mut beneath = Vec::new();
            self.log.scan(self.set, &range, &mut |resource| {
                beneath.push(resource.key.clone());
                if beneath.len() < BENEATH { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            let Some(last) = beneath.last() else { return Ok(()) };
            range.start = format!("{last}\0");
            beneath.into_iter().try_for_each(|key| sink.push(Work::Gone { key }))?;
        }
    }
}

/// Where a path leads, if it is a link that is followed.
fn link_target(folder: &Folder, path: &[u8]) -> Option<Vec<u8>> {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&b""[..], path),
    };
    let dir = folder.dir(parent.split(|byte| *byte == b'/').filter(|name| !name.is_empty())).ok()?;
    dir.link_target(name)
}

fn note(dirty: &mut HashMap<Vec<u8>, Dirty>, path: Vec<u8>, hint: Hint) {
    let now = Instant::now();
    let path = dirty.entry(path).or_insert(Dirty { first: now, last: now, writing: Writing::No });
    path.last = now;
    path.writing = match hint {
        Hint::Written => Writing::Written,
        Hint::Created => Writing::Created,
        Hint::Settled => Writing::No,
        // Whoever wrote it may still have it open.
        Hint::Attributes => path.writing,
    };
}

/// Forgets the paths that a scan of everything will look at. Those still being written keep their state, so that it
/// does not publish them half-written, unless they are so many that scans would follow each other without end.
fn leave_to_scan(dirty: &mut HashMap<Vec<u8>, Dirty>, debounce: Duration, now: Instant) {
    dirty.retain(|_, path| path.writing != Writing::No && path.due(debounce) > now);
    if dirty.len() > MAX_DIRTY {
        dirty.clear();
    }
}

/// Paths that somebody is writing.
fn written(dirty: &HashMap<Vec<u8>, Dirty>) -> HashSet<Vec<u8>> {
    dirty.iter().filter(|(_, path)| path.writing != Writing::No).map(|(path, _)| path.clone()).collect()
}

fn after(interval: Duration) -> Option<Instant> {
    (!interval.is_zero()).then(|| Instant::now() + interval)
}

fn defer(dirty: &mut HashMap<Vec<u8>, Dirty>, paths: Vec<Vec<u8>>) {
    let now = Instant::now();
    for path in paths {
        dirty.entry(path).or_insert(Dirty { first: now, last: now, writing: Writing::No });
    }
}

fn tell_problems(report: &IngestReport) {
    for problem in &report.problems {
        tracing::warn!("{problem}");
    }
    let more = report.problem_count - report.problems.len() as u64;
    if more > 0 {
        tracing::warn!("{more} more files could not be read");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBOUNCE: Duration = Duration::from_millis(200);

    fn noted(hints: &[Hint]) -> HashMap<Vec<u8>, Dirty> {
        let mut dirty = HashMap::new();
        for hint in hints {
            note(&mut dirty, b"a".to_vec(), *hint);
        }
        dirty
    }

    #[test]
    fn changed_attributes_do_not_end_a_writing() {
        assert!(noted(&[Hint::Written, Hint::Attributes])[&b"a"[..]].writing == Writing::Written);
        assert!(noted(&[Hint::Written, Hint::Settled, Hint::Attributes])[&b"a"[..]].writing == Writing::No);
        assert!(noted(&[Hint::Attributes])[&b"a"[..]].writing == Writing::No);
    }

    #[test]
    fn a_scan_of_everything_passes_over_what_is_being_written_now() {
        let now = Instant::now();
        let left = |hints: &[Hint], later: Duration| {
            let mut dirty = noted(hints);
            leave_to_scan(&mut dirty, DEBOUNCE, now + later);
            written(&dirty).len()
        };
        assert_eq!(left(&[Hint::Written], Duration::ZERO), 1);
        assert_eq!(left(&[Hint::Settled], Duration::ZERO), 0);
        assert_eq!(left(&[Hint::Written], UNCLOSED + Duration::from_secs(60)), 0, "quiet for long enough");
    }

    #[test]
    fn too_many_unclosed_files_do_not_make_scans_without_end() {
        let mut dirty = HashMap::new();
        for number in 0..=MAX_DIRTY {
            note(&mut dirty, number.to_string().into_bytes(), Hint::Created);
        }
        leave_to_scan(&mut dirty, DEBOUNCE, Instant::now());
        assert!(dirty.is_empty());
    }
}
