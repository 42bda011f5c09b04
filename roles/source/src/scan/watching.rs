//! Main loop of a watch, which combines events and scans.
//!
//! Events only indicate that a path may have changed. Such a path is read when it is finished, or
//! after the debounce time without events, if no process is known to be writing the file. The whole
//! folder is scanned each hour, and whenever events may have been lost. Paths that cannot be
//! watched reliably are examined at intervals.

use crate::links::{fingerprint_with, owner_of, same_as_seen};
use crate::names::aliases::Aliases;
use crate::names::keys::{is_published_name, is_published_path, key_of, path_of, too_long};
use crate::names::path_state::{PathState, inspect};
use crate::scan::aside::Aside;
use crate::scan::events::{Events, Hint};
use crate::scan::full::{
    ScanError, ScanOptions, ScanReport, beneath, delete, is_folder, scan_reading, walk,
};
use crate::scan::guard::Lost;
use crate::scan::guard::{Deletions, Held, Peak};
use crate::scan::hash::Reading;
use crate::scan::ingest::{IngestReport, MAX_NOTED, Work, ingest_now, with_causes};
use crate::scan::options::IngestOptions;
use crate::scan::pending::{INSTANT, Pending};
use crate::scan::rest::Open;
use crate::scan::status::{WatchState, WatchStatus};
use crate::scan::unsure::Unsure;
use crate::scan::watch_options::WatchOptions;
use abreast_core::{ChangeLog, Clock as _, Imported, LogError, SetId, State, SystemClock};
use abreast_folder::{Folder, Kind};
use abreast_webtypes::Link;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the folder is checked for replacement, an unreadable folder is retried, and
/// held deletions are judged again.
const RETRY: Duration = Duration::from_secs(5);
/// Inverse of the highest share of time for the scans that judge held deletions, and for checks of
/// open files.
const SHARE: u32 = 20;
/// Interval at which the stop flag is checked.
const TICK: Duration = Duration::from_millis(200);
/// Longest time for which the first scan waits for files that are being written.
const PATIENCE: Duration = Duration::from_secs(3);
/// Ratio of the pause after a pass to the duration of the pass, so that many changes are recorded
/// together.
const PAUSE: u32 = 8;
/// Interval at which events are read during that pause. Reading at intervals is cheaper than
/// reading each event, and the queue of the kernel holds thousands of events.
const GATHER: Duration = Duration::from_millis(10);

pub(crate) struct Watching {
    options: WatchOptions,
    log: Arc<dyn ChangeLog>,
    set: SetId,
    stop: Arc<AtomicBool>,
    status: Arc<WatchStatus>,
    aliases: Aliases,
}

/// Reason why the watch of a folder ended.
enum Ended {
    Stopped,
    Vanished(String),
    /// The store failed, with the text of the error.
    Failed(String),
}

impl From<ScanError> for Ended {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Stopped => Self::Stopped,
            ScanError::Log(error) => error.into(),
            other => Self::Vanished(other.to_string()),
        }
    }
}

impl From<LogError> for Ended {
    fn from(error: LogError) -> Self {
        Self::Failed(with_causes(&error))
    }
}

impl Watching {
    pub(crate) fn new(
        options: WatchOptions,
        log: Arc<dyn ChangeLog>,
        set: SetId,
        stop: Arc<AtomicBool>,
        status: Arc<WatchStatus>,
    ) -> Self {
        Self { options, log, set, stop, status, aliases: Aliases::default() }
    }

    /// Watches the folder until the watch is stopped; retries after errors.
    pub(crate) fn run(self) {
        while !self.stopping() {
            match self.watch_once() {
                Ended::Stopped => break,
                Ended::Vanished(reason) => {
                    tracing::error!(folder = %self.options.folder.display(), "{reason}; nothing is deleted, trying again");
                    self.status.set(WatchState::Vanished(reason));
                }
                Ended::Failed(reason) => {
                    tracing::error!(folder = %self.options.folder.display(), "cannot record changes: {reason}");
                    self.status.set(WatchState::Failed(reason));
                }
            }
            let until = Instant::now() + RETRY;
            while Instant::now() < until && !self.stopping() {
                thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
            }
        }
        self.status.set(WatchState::Stopped);
    }

    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Watches until the watch is stopped, or the folder is missing or unreadable.
    fn watch_once(&self) -> Ended {
        let never = Round::begin(self).and_then(Round::run);
        match never {
            Ok(never) => match never {},
            Err(ended) => ended,
        }
    }

    fn events(&self, root: &std::path::Path, folder: &Folder) -> Option<Events> {
        if !self.options.events {
            return None;
        }
        let events = Events::start(root, folder);
        if let Err(error) = &events {
            tracing::warn!(
                folder = %root.display(),
                "cannot watch for changes: {error}; the folder is scanned every few seconds instead \
                 (help: raise fs.inotify.max_user_watches and max_user_instances)"
            );
        }
        events.ok()
    }

    /// Returns the path that an event is about: for a sidecar, the path of its file.
    fn subject(&self, path: Vec<u8>) -> Vec<u8> {
        let Some(owner) = owner_of(&path) else { return path };
        self.options.ingest.links.saw(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default());
        owner
    }

    /// Returns the current links of a file.
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

    /// Handles a file whose fingerprint is in the log: the file is not read, but its links may have
    /// changed.
    fn push_known(
        &self,
        folder: &Folder,
        key: &str,
        path: &[u8],
        work: &mut Vec<Work>,
    ) -> Result<bool, LogError> {
        let ingest = &self.options.ingest;
        // Without links and without writes of the API, no other writer could have recorded the
        // file.
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
            let witness = fingerprint_with(&stat, &links);
            let state = State { links, ..known.state };
            work.push(Work::Relink(Box::new(Imported { key: key.to_owned(), state, witness })));
        }
        Ok(same_file)
    }

    /// Determines the work for a path that had an event.
    fn push_path(&self, folder: &Folder, path: &[u8], pass: &mut Pass) -> Result<(), LogError> {
        if let Some(why) = too_long(path) {
            pass.report.refused(path, &why);
            return Ok(());
        }
        let key = key_of(path);
        // The API may already have recorded the file.
        if self.options.ingest.links.depend_on_files() {
            pass.report.touched.push(key.clone());
        }
        let found = inspect(folder, path);
        if !matches!(found, PathState::Folder) {
            self.options.private.copies().sweep(folder, path);
        }
        match found {
            // A file that was replaced by a folder is not judged by the guard.
            PathState::Folder => pass.work.push(Work::Gone { key }),
            PathState::File(_) if is_folder(&*self.log, self.set, &key)? => {
                // First record the deletion of the resources in the folder that this file replaced.
                self.lose_beneath(&key, pass)?;
                pass.report.deferred.push(path.to_vec());
            }
            PathState::File(dir) => {
                if !self.push_known(folder, &key, path, &mut pass.work)? {
                    let links = self.links_of(folder, path);
                    pass.work.push(Work::Check { key, path: path.to_vec(), dir, links });
                }
            }
            found @ (PathState::LeftOut | PathState::Nothing) => {
                let is_left_out = matches!(found, PathState::LeftOut);
                match folder.hidden_folder(path, Kind::File).filter(|_| is_left_out) {
                    // Resources that were published before their folder became private.
                    Some(hidden) if !hidden.is_empty() => {
                        self.lose_beneath(&key_of(hidden), pass)?;
                    }
                    _ => self.lose_beneath(&key, pass)?,
                }
                pass.lost.add_known(&*self.log, self.set, vec![key])?;
            }
            PathState::Unreadable(error) => pass.report.problem(path, &error),
        }
        Ok(())
    }

    /// Adds all resources below a deleted folder to the deletions.
    fn lose_beneath(&self, key: &str, pass: &mut Pass) -> Result<(), LogError> {
        if pass.holding {
            return Ok(());
        }
        self.log.scan(self.set, &beneath(key), &mut |resource| {
            pass.lost.push(resource.key.clone());
            if pass.lost.too_many() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }

    /// Checks that the path still leads to the opened folder. Otherwise deletions must not be
    /// recorded.
    fn check_root(&self, root: &std::path::Path, folder: &Folder) -> Result<(), Ended> {
        use std::os::unix::fs::MetadataExt as _;
        self.log.check_available()?;
        let path = &self.options.folder;
        let gone = |reason: &dyn std::fmt::Display| {
            Ended::Vanished(format!("`{}` vanished: {reason}", path.display()))
        };
        let now = std::fs::metadata(root).map_err(|error| gone(&error))?;
        let opened = folder.root().own_stat().map_err(|error| gone(&error))?;
        if (now.dev(), now.ino()) != (opened.device, opened.inode) {
            return Err(gone(&"another folder has taken its place"));
        }
        Ok(())
    }
}

/// Work for the paths that had events.
#[derive(Default)]
struct Pass {
    work: Vec<Work>,
    lost: Lost,
    report: IngestReport,
    /// Whether deletions are held, so that a scan must judge further deletions.
    holding: bool,
}

/// State of held deletions, until they are recorded or the files are back.
struct Hold {
    since: Instant,
    next_scan: Instant,
    /// Resources of the set before the deletions. Later changes do not affect the decision.
    before: u64,
}

/// State of the watch for a folder, until the folder is replaced or unreadable.
struct Round<'w> {
    watching: &'w Watching,
    root: PathBuf,
    folder: Folder,
    events: Option<Events>,
    pending: Pending,
    unsure: Unsure,
    aside: Aside,
    peak: Peak,
    hold: Option<Hold>,
    /// Earliest time of the next check for processes that have files open.
    next_question: Instant,
    /// Whether more resources are missing than fit in memory, so that a full scan is necessary.
    scan_soon: bool,
    /// Whether resources that are found now belong to the initial state of the set.
    is_first: bool,
}

impl<'w> Round<'w> {
    fn begin(watching: &'w Watching) -> Result<Self, Ended> {
        let options = &watching.options;
        let root = std::fs::canonicalize(&options.folder).map_err(|error| {
            Ended::Vanished(format!("cannot open `{}`: {error}", options.folder.display()))
        })?;
        let folder = crate::names::opened::open_folder(
            &root,
            options.follow_links,
            &options.filter,
            &options.private,
        )
        .map_err(|error| Ended::Vanished(error.to_string()))?;
        let events = watching.events(&root, &folder);
        let unsure = Unsure::new(options.events && events.is_none());
        Ok(Self {
            watching,
            root,
            folder,
            events,
            pending: Pending::new(options.debounce, options.at_once),
            unsure,
            aside: Aside::new(),
            peak: Peak::new(Instant::now()),
            hold: None,
            next_question: Instant::now(),
            scan_soon: false,
            is_first: false,
        })
    }

    fn run(mut self) -> Result<Infallible, Ended> {
        let options = &self.watching.options;
        self.first_scan()?;
        self.watching.status.set_folder(&self.folder);
        let mut next_check = Instant::now() + RETRY;
        let mut next_scan = after(options.rescan);
        let mut next_reread = after(options.reread);
        let mut next_pass = Instant::now();
        loop {
            self.watching.status.set(WatchState::Watching);
            let pause = next_pass.saturating_duration_since(Instant::now());
            if pause.is_zero() {
                let due = self.pending.next_due();
                let wait =
                    due.map_or(TICK, |due| due.saturating_duration_since(Instant::now()).min(TICK));
                self.read_events(wait);
            } else {
                thread::sleep(pause.min(GATHER));
                self.read_events(Duration::ZERO);
            }
            if self.watching.stopping() {
                return Err(Ended::Stopped);
            }
            let now = Instant::now();
            if now >= next_check {
                // Replacing the published folder itself does not cause an event.
                self.watching.check_root(&self.root, &self.folder)?;
                next_check = now + RETRY;
            }
            for path in self.aside.take_ready() {
                self.pending.note(path, Hint::Finished);
            }
            let read_all = next_reread.is_some_and(|at| now >= at);
            let lost = self.events.as_mut().is_some_and(Events::take_lost);
            if lost && let Some(events) = &mut self.events {
                events.rewatch();
            }
            let overflow = lost || self.pending.too_many();
            if overflow {
                let folder = self.root.display();
                tracing::warn!(%folder, "too many changes at once to follow one by one; scanning");
            }
            let again = self.scan_again(now);
            if overflow || read_all || again || next_scan.is_some_and(|at| now >= at) {
                self.pending.leave_to_scan(now);
                self.watching.check_root(&self.root, &self.folder)?;
                let report = self.full_scan(read_all)?;
                self.pending.defer(report.ingest.deferred);
                next_scan = after(options.rescan);
                if read_all {
                    next_reread = after(options.reread);
                }
                continue;
            }
            if self.unsure.is_due(now) {
                self.examine()?;
            }
            self.ask_who_writes(now);
            if now < next_pass {
                continue;
            }
            let ready = self.pending.take_ready(now);
            if ready.is_empty() {
                continue;
            }
            self.watching.check_root(&self.root, &self.folder)?;
            self.look_at(ready, false)?;
            // If more paths are due than one pass reads, the pause is skipped, because the next
            // pass is full anyway.
            let is_behind = self.pending.next_due().is_some_and(|due| due <= now);
            if options.at_once && !is_behind {
                next_pass = Instant::now() + (now.elapsed() * PAUSE).min(options.debounce);
            }
        }
    }

    /// Checks for writers of files without a close event: a file that was modified by path, or that
    /// was closed before its event was read.
    fn ask_who_writes(&mut self, now: Instant) {
        if now < self.next_question {
            return;
        }
        let unsure = self.pending.take_unsure(now);
        let rest = &self.watching.options.ingest.rest;
        for path in &unsure {
            let Ok((_, stat)) = self.folder.open_file(path) else { continue };
            if rest.writer_of(&stat) == Open::No {
                self.pending.note(path.clone(), Hint::Finished);
            }
        }
        self.next_question = now + now.elapsed() * SHARE;
    }

    /// Waits for events, at most `wait`, and adds their paths to the queue.
    fn read_events(&mut self, wait: Duration) {
        let (pending, watching) = (&mut self.pending, self.watching);
        match &mut self.events {
            Some(events) => {
                events.read(wait, |path, hint| pending.note(watching.subject(path), hint));
            }
            None => thread::sleep(wait),
        }
    }

    /// Whether a full scan is necessary although no event was lost.
    fn scan_again(&mut self, now: Instant) -> bool {
        let confirmed = self.watching.status.is_confirmed();
        let judge = self.hold.as_ref().is_some_and(|hold| now >= hold.next_scan);
        std::mem::take(&mut self.scan_soon)
            || confirmed
            || judge
            || self.unsure.scan_is_due(self.events.as_ref(), now)
    }

    /// Runs the scan at the start, which imports the base of a new set.
    fn first_scan(&mut self) -> Result<(), Ended> {
        let Watching { log, set, options, .. } = self.watching;
        let head = log.head(*set)?;
        let importing = head.takes_base();
        self.is_first = options.initial_changes && head.is_first();
        let mut report = self.full_scan(false)?;
        if importing || self.is_first {
            // Recently written files also belong to the base, after they come to rest.
            let until = Instant::now() + PATIENCE;
            let mut deferred = std::mem::take(&mut report.ingest.deferred);
            while !deferred.is_empty() && Instant::now() < until && !self.watching.stopping() {
                thread::sleep(self.watching.options.ingest.settle.min(TICK));
                deferred = self.import(&deferred)?;
            }
            if self.watching.stopping() {
                return Err(Ended::Stopped);
            }
            log.complete_import(*set)?;
            self.is_first = false;
            // The base is complete, but the import only counted files at rest.
            self.peak.note(Instant::now(), log.head(*set)?.resources);
            if report.gone > 0 {
                // After an interrupted import, files of the earlier import may have been deleted.
                deferred.extend(self.full_scan(false)?.ingest.deferred);
            }
            report.ingest.deferred = deferred;
        }
        self.pending.defer(report.ingest.deferred);
        Ok(())
    }

    /// Adds files to the base. Returns the paths of files that are not at rest.
    fn import(&mut self, paths: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Ended> {
        let Watching { log, set, options, .. } = self.watching;
        let writes = options.ingest.writes.count();
        let mut pass = Pass { holding: true, ..Pass::default() };
        for path in paths {
            self.watching.push_path(&self.folder, path, &mut pass)?;
        }
        let reading = Reading {
            stop: &self.watching.stop,
            aside: None,
            asks_writers: true,
            empty: Duration::ZERO,
        };
        let ingest = IngestOptions { first: self.is_first, ..options.ingest.clone() };
        let mut report =
            ingest_now(&**log, *set, &ingest, reading, writes, pass.work, || |_: &[u8]| false)?;
        pass.report.add(report);
        report = pass.report;
        let deferred = std::mem::take(&mut report.deferred);
        self.take_over(report, false);
        Ok(deferred)
    }

    /// Returns the rule for the deletions of the next scan.
    fn deletions(&mut self) -> Result<Deletions, Ended> {
        let Watching { options, status, .. } = self.watching;
        let now = Instant::now();
        let over =
            self.hold.as_ref().is_some_and(|hold| now >= hold.since + options.hold_deletions);
        if over {
            tracing::warn!(
                folder = %self.root.display(),
                "deletions were held for {} s and are recorded now", options.hold_deletions.as_secs()
            );
        }
        if status.take_confirmed() || over || options.hold_deletions.is_zero() {
            self.peak.forget(now);
            return Ok(Deletions::Confirmed);
        }
        let peak = match &self.hold {
            Some(hold) => hold.before,
            None => self.judged_size()?,
        };
        Ok(Deletions::Guarded { peak })
    }

    /// Returns the size of the set to which deletions are compared.
    fn judged_size(&mut self) -> Result<u64, Ended> {
        let head = self.watching.log.head(self.watching.set)?;
        Ok(self.peak.judged(Instant::now(), head.resources))
    }

    /// Records the size of the set, unless a deletion is not yet recorded in the log.
    fn note_size(&mut self) -> Result<(), Ended> {
        if self.hold.is_none() && !self.scan_soon && !self.pending.has_removed() {
            let head = self.watching.log.head(self.watching.set)?;
            self.peak.note(Instant::now(), head.resources);
        }
        Ok(())
    }

    fn full_scan(&mut self, read_all: bool) -> Result<ScanReport, Ended> {
        let Watching { log, set, options, status, .. } = self.watching;
        status.set(WatchState::Scanning);
        let importing = log.head(*set)?.takes_base();
        let (held, deletions) = (self.pending.written(), self.deletions()?);
        let ingest = IngestOptions { first: self.is_first, ..options.ingest.clone() };
        let scan_options = ScanOptions { ingest, read_all, held, deletions };
        // The base must be complete, so large files of the base are not left to other threads.
        let aside = (!importing && !self.is_first).then_some(self.aside.files());
        let reading =
            Reading { stop: &self.watching.stop, aside, asks_writers: true, empty: Duration::ZERO };
        let begun = Instant::now();
        self.unsure.forget();
        let mut report = scan_reading(&self.folder, b"", &**log, *set, &scan_options, reading)?;
        options.private.copies().sweep(&self.folder, b"");
        self.watching.aliases.replace(std::mem::take(&mut report.aliases));
        self.unsure.scanned(begun.elapsed());
        let IngestReport { problem_count, problems, .. } = &report.ingest;
        status.scanned(SystemClock.now(), *problem_count, problems.clone());
        match report.held {
            Some(held) => self.hold(held, begun.elapsed()),
            None => self.release(),
        }
        tracing::info!(
            folder = %self.folder.path().display(),
            files = report.files,
            recorded = report.ingest.recorded,
            gone = report.gone,
            links_not_followed = report.links,
            seconds = begun.elapsed().as_secs_f64(),
            "scanned"
        );
        metrics::counter!("abreast_source_scans_total").increment(1);
        self.unsure.add(&mut report.ingest, true);
        let deferred = std::mem::take(&mut report.ingest.deferred);
        self.take_over(std::mem::take(&mut report.ingest), false);
        report.ingest.deferred = deferred;
        self.note_size()?;
        Ok(report)
    }

    /// Holds deletions until they are confirmed, the files are back, or the time is over.
    fn hold(&mut self, held: Held, scan_took: Duration) {
        let now = Instant::now();
        let next_scan =
            now + RETRY.max(scan_took * SHARE).min(self.watching.options.hold_deletions);
        if self.hold.is_none() {
            tracing::error!(
                folder = %self.root.display(),
                "{held} (help: if {}, restart with `--confirm-deletions`, or see docs/publishing.md for confirming it while \
                 the server runs)",
                held.if_intended()
            );
        }
        let (since, before) =
            self.hold.as_ref().map_or((now, held.of), |hold| (hold.since, hold.before));
        self.hold = Some(Hold { since, next_scan, before });
        self.watching.status.set_held(Some(held));
    }

    fn release(&mut self) {
        if self.hold.take().is_some() {
            tracing::info!(folder = %self.root.display(), "deletions are not held any more");
        }
        self.watching.status.set_held(None);
    }

    /// Examines paths without reliable events.
    fn examine(&mut self) -> Result<(), Ended> {
        let begun = Instant::now();
        let ready = self.unsure.take_readable(&self.folder, self.events.as_mut());
        let IngestOptions { rest, settle, .. } = &self.watching.options.ingest;
        let changed = self.unsure.changed(&self.folder, rest, *settle);
        self.pending.defer(changed);
        // The time for reading changed files is useful, and does not count towards the share.
        self.unsure.examined(begun.elapsed());
        if !ready.is_empty() {
            self.watching.check_root(&self.root, &self.folder)?;
            self.look_at(ready, true)?;
        }
        Ok(())
    }

    /// Reads paths of files and folders. The deletion of missing resources is recorded, unless the
    /// guard holds it.
    fn look_at(&mut self, mut ready: Vec<Vec<u8>>, again: bool) -> Result<(), Ended> {
        let Watching { log, set, options, aliases, .. } = self.watching;
        let (log, set) = (&**log, *set);
        // If symbolic links lead to a file, it is also published under the paths of the links.
        let others: Vec<_> = ready.iter().flat_map(|path| aliases.of(path)).collect();
        ready.extend(others);
        ready.sort_unstable();
        ready.dedup();
        let before = self.judged_size()?;
        let writes = options.ingest.writes.count();
        let mut pass = Pass { holding: self.hold.is_some(), ..Pass::default() };
        for path in ready.iter().filter(|path| is_published_path(path)) {
            if self.watching.stopping() {
                return Err(Ended::Stopped);
            }
            self.watching.push_path(&self.folder, path, &mut pass)?;
        }
        let Pass { work, mut lost, mut report, .. } = pass;
        // The paths had no events for the debounce time, or no process has them open. An event of
        // this moment may not have been read yet, and a file is empty for an instant when it is
        // written again. Therefore new events are read before anything is recorded.
        let settle = options.debounce.min(INSTANT);
        let ingest = IngestOptions { settle, ..options.ingest.clone() };
        let Self { events, pending, watching, .. } = self;
        let reading = Reading {
            stop: &watching.stop,
            aside: Some(self.aside.files()),
            asks_writers: false,
            empty: options.ingest.settle,
        };
        report.add(ingest_now(log, set, &ingest, reading, writes, work, || {
            if let Some(events) = events {
                events
                    .read(Duration::ZERO, |path, hint| pending.note(watching.subject(path), hint));
            }
            |path: &[u8]| pending.contains(path)
        })?);
        lost.add_known(log, set, std::mem::take(&mut report.gone))?;
        if options.follow_links {
            aliases.add(
                ready
                    .iter()
                    .filter_map(|path| Some((path.clone(), link_target(&self.folder, path)?))),
            );
        }
        self.look_into_folders(&ready, &mut lost, &mut report)?;
        self.judge(lost, before, &mut report)?;
        // Other resources link to these only if they exist. The links found by a full scan are
        // already correct.
        let mut touched = std::mem::take(&mut report.touched);
        // The number of such resources exceeds the limit of the report.
        self.scan_soon |= touched.len() >= MAX_NOTED;
        touched.sort_unstable();
        touched.dedup();
        for target in touched {
            let sources = options.ingest.links.sources_of(log, set, &target)?;
            self.pending.defer(sources.iter().map(|key| path_of(key)).collect());
        }
        self.take_over(report, again);
        self.note_size()
    }

    /// Scans the paths that are folders.
    fn look_into_folders(
        &mut self,
        ready: &[Vec<u8>],
        lost: &mut Lost,
        report: &mut IngestReport,
    ) -> Result<(), Ended> {
        let Watching { log, set, options, aliases, stop, .. } = self.watching;
        let mut scan_options = None;
        let mut scanned: Option<&[u8]> = None;
        for path in ready {
            // The paths are sorted, so paths below a scanned folder follow it directly.
            let beneath = scanned.is_some_and(|outer| {
                path.len() > outer.len() && path.starts_with(outer) && path[outer.len()] == b'/'
            });
            if beneath || !is_published_path(path) {
                continue;
            }
            match inspect(&self.folder, path) {
                PathState::Folder => {}
                // The path may have been a folder a moment ago.
                PathState::Unreadable(error) => {
                    report.problem(path, &error);
                    continue;
                }
                PathState::File(_) | PathState::LeftOut | PathState::Nothing => continue,
            }
            scanned = Some(path);
            let scan_options = scan_options.get_or_insert_with(|| ScanOptions {
                ingest: options.ingest.clone(),
                held: self.pending.written(),
                ..ScanOptions::default()
            });
            let reading = Reading {
                stop,
                aside: Some(self.aside.files()),
                asks_writers: true,
                empty: Duration::ZERO,
            };
            let mut found = walk(&self.folder, path, &**log, *set, scan_options, reading)?;
            options.private.copies().sweep(&self.folder, path);
            aliases.add(found.aliases);
            lost.add(found.lost);
            found.ingest.deferred.append(&mut found.replaced);
            report.add(found.ingest);
        }
        Ok(())
    }

    /// Records the deletion of missing resources, or holds it.
    fn judge(&mut self, lost: Lost, before: u64, report: &mut IngestReport) -> Result<(), Ended> {
        let Watching { log, set, options, stop, .. } = self.watching;
        // While deletions are held, scans judge all deletions.
        if lost.count == 0 || self.hold.is_some() {
            return Ok(());
        }
        if lost.too_many() {
            self.scan_soon = true;
            return Ok(());
        }
        let resources = log.head(*set)?.resources;
        if !options.hold_deletions.is_zero()
            && let Some(held) = Held::judge(&lost, resources, before, self.is_emptied())
        {
            self.hold(held, Duration::ZERO);
            return Ok(());
        }
        let reading = Reading {
            stop,
            aside: Some(self.aside.files()),
            asks_writers: false,
            empty: Duration::ZERO,
        };
        report.add(delete(&self.folder, &**log, *set, &options.ingest, reading, lost.keys)?);
        Ok(())
    }

    /// Whether the folder does not contain any published file.
    fn is_emptied(&self) -> bool {
        let entries = self.folder.root().entries();
        entries.is_ok_and(|mut entries| {
            !entries.any(|entry| entry.is_ok_and(|entry| is_published_name(&entry.name)))
        })
    }

    /// Adds the unfinished work of a report to the queues.
    fn take_over(&mut self, mut report: IngestReport, again: bool) {
        self.unsure.add(&mut report, false);
        self.pending.defer(std::mem::take(&mut report.deferred));
        self.aside.read(
            &self.folder,
            &self.watching.options.ingest,
            std::mem::take(&mut report.large),
        );
        if !again {
            report_problems(&report);
        }
    }
}

/// Returns the target of a path that is a followed symbolic link.
fn link_target(folder: &Folder, path: &[u8]) -> Option<Vec<u8>> {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&b""[..], path),
    };
    let dir =
        folder.dir(parent.split(|byte| *byte == b'/').filter(|name| !name.is_empty())).ok()?;
    dir.link_target(name)
}

fn after(interval: Duration) -> Option<Instant> {
    (!interval.is_zero()).then(|| Instant::now() + interval)
}

fn report_problems(report: &IngestReport) {
    for problem in &report.problems {
        tracing::warn!("{problem}");
    }
    let more = report.problem_count - report.problems.len() as u64;
    if more > 0 {
        tracing::warn!("more files that could not be read: {more}");
    }
}
