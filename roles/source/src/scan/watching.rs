//! Main loop of a watch, which combines events and scans.
//!
//! Events only indicate that a path may have changed. Such a path is read when it is finished, or
//! after the debounce time without events, if no process is known to be writing the file. The whole
//! folder is scanned each hour, and whenever events may have been lost. Paths that cannot be
//! watched reliably are examined at intervals.

mod looks;
mod paths;
mod scans;

use crate::names::aliases::Aliases;
use crate::scan::aside::Aside;
use crate::scan::events::{Events, Hint};
use crate::scan::full::ScanError;
use crate::scan::guard::Peak;
use crate::scan::ingest::with_causes;
use crate::scan::pending::Pending;
use crate::scan::rest::Open;
use crate::scan::status::{WatchState, WatchStatus};
use crate::scan::unsure::Unsure;
use crate::scan::watch_options::WatchOptions;
use abreast_core::{ChangeLog, LogError, SetId};
use abreast_folder::Folder;
use std::convert::Infallible;
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
        // The first scan is as good.
        self.watching.status.take_scan_wanted();
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
            let wanted = self.watching.status.take_scan_wanted();
            if overflow || read_all || again || wanted || next_scan.is_some_and(|at| now >= at) {
                self.pending.leave_to_scan(now);
                self.watching.check_root(&self.root, &self.folder)?;
                let report = self.full_scan(read_all, wanted)?;
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
            if let Some(since) = self.pending.taken() {
                metrics::histogram!("abreast_source_publish_lag_seconds").record(since.elapsed());
            }
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
}

fn after(interval: Duration) -> Option<Instant> {
    (!interval.is_zero()).then(|| Instant::now() + interval)
}
