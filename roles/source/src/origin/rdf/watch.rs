//! Watch of a folder of RDF files, which together are the complete state of a set, or of a SPARQL
//! endpoint.
//!
//! Names, sizes and times of the files are compared at intervals. If a file has changed and the
//! files then remain unchanged for a moment, all files are read. An endpoint is polled at
//! intervals.

use super::RdfInput;
use super::seen::{self, Listing, Seen, list};
use crate::origin::rdf::error::RdfError;
use crate::origin::rdf::report::RdfReport;
use crate::origin::rdf::target::{RdfOptions, RdfTarget};
use crate::origin::sparql::SparqlSet;
use crate::scan::guard::Peak;
use crate::scan::leased::run_while_held;
use crate::scan::pending::UNCLOSED;
use crate::{Private, WatchState, WatchStatus};
use abreast_core::contents::ContentStore;
use abreast_core::{ChangeLog, Clock as _, ErrorKind, Lease, SetId, SystemClock, start_thread};
use abreast_folder::{read_sealed, write_sealed};
use abreast_webtypes::{count, visible};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shortest and longest pause between two comparisons of the files.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// Longest wait for files that are being written, if the folder is only read once.
const PATIENCE: Duration = Duration::from_secs(3);
/// Shortest pause between two checks during that wait.
const AGAIN: Duration = Duration::from_millis(50);
/// Pause after an error of the store.
const RETRY: Duration = Duration::from_secs(10);
/// Pause after an error of an endpoint.
const ASK_AGAIN: Duration = Duration::from_secs(300);
/// Inverse of the highest share of time that comparisons may take.
const SHARE: u32 = 50;

/// A set whose entities are described by the files in a folder.
#[derive(Clone)]
pub struct RdfFolder {
    /// Path of the folder with RDF files.
    pub path: PathBuf,
    /// Change log that contains the set.
    pub log: Arc<dyn ChangeLog>,
    /// Number of the set in the log.
    pub set: SetId,
    /// Rules for folders that are not read.
    pub private: Private,
    /// Store of the entities' descriptions.
    pub contents: Arc<dyn ContentStore>,
    /// Options of reading RDF into the set.
    pub options: RdfOptions,
    /// Path of the record of the last reading. If the files are equal to the record, they are not
    /// read again at the start.
    pub record: Option<PathBuf>,
}

impl RdfFolder {
    /// Replaces the complete state of the set with the current files.
    ///
    /// # Errors
    /// If the folder or a file cannot be read, a process is still writing a file after a short
    /// wait, or the guard holds the deletions, nothing is recorded. The log, the contents or the
    /// disk can fail after some changes were recorded.
    pub fn read(&self) -> Result<RdfReport, RdfError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let begun = Instant::now();
            let listing = list(&self.path, &self.private)?;
            if let Some(report) = self.read_before(&listing.files)? {
                listing.warn(&Listing::default());
                return Ok(report);
            }
            let result = match seen::unsettled(&listing.files, &[], &self.options.rest) {
                None => self.replace(&listing.files),
                Some(path) => Err(RdfError::Unsettled(path.to_owned())),
            };
            if !matches!(result, Err(RdfError::Unsettled(_))) || Instant::now() >= until {
                listing.warn(&Listing::default());
                return result;
            }
            std::thread::sleep(begun.elapsed().max(AGAIN));
        }
    }

    /// Returns the report of the last reading, if the files have not changed since and the set has
    /// no later changes.
    fn read_before(&self, files: &[Seen]) -> Result<Option<RdfReport>, RdfError> {
        let Some(record) = &self.record else { return Ok(None) };
        let head = self.log.head(self.set)?;
        let kept = read_sealed(record).unwrap_or_default();
        Ok(seen::parse(&kept, files, &self.options, &head))
    }

    fn replace(&self, files: &[Seen]) -> Result<RdfReport, RdfError> {
        let settled = seen::are_settled(files);
        let report = self.replace_by(files)?;
        // No record is written for held deletions, so that they are judged again after a restart.
        if let Some(record) = &self.record
            && settled
            && report.held.is_none()
        {
            let head = self.log.head(self.set)?;
            // If the record cannot be written, the files are read again after a restart.
            let _ = write_sealed(record, seen::record(&report, files, &self.options, &head));
        }
        Ok(report)
    }

    fn replace_by(&self, files: &[Seen]) -> Result<RdfReport, RdfError> {
        let inputs = files.iter().map(|file| {
            let base = self.options.base.as_ref().map(|base| {
                let path = file.path.strip_prefix(&self.path).unwrap_or(&file.path);
                format!("{base}{}", crate::names::keys::key_of(path.as_os_str().as_bytes()))
            });
            Ok(RdfInput { base, ..RdfInput::open(&file.path)? })
        });
        let target = RdfTarget {
            log: &*self.log,
            set: self.set,
            contents: &*self.contents,
            kept: None,
            options: &self.options,
        };
        super::replace_if(target, inputs, target.log.now(), &|| {
            let now = list(&self.path, &self.private)?.files;
            match files.iter().find(|file| now.binary_search(file).is_err()) {
                Some(other) => Err(RdfError::Unsettled(other.path.clone())),
                None if now.len() > files.len() => Err(RdfError::Unsettled(self.path.clone())),
                None => Ok(()),
            }
        })
    }
}

/// A running watch of a folder or an endpoint.
pub struct RdfWatch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    status: Arc<WatchStatus>,
    stopping: Arc<AtomicBool>,
    lock: Mutex<()>,
    changed: Condvar,
    /// Start of the hold, and the number of entities before the deletions; `None` without held
    /// deletions.
    held: Mutex<Option<(Instant, u64)>>,
    peak: Mutex<Peak>,
}

impl RdfWatch {
    /// Starts the watch of a folder.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(mut folder: RdfFolder) -> io::Result<Self> {
        let lease = folder.options.lease.clone();
        let log = (Arc::clone(&folder.log), folder.set);
        Self::spawn(lease, log, move |shared, log| {
            folder.log = log;
            folder.options.sort.stop = Arc::clone(&shared.stopping);
            shared.run(&mut folder);
        })
    }

    /// Starts polling a SPARQL endpoint.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn poll(mut set: SparqlSet) -> io::Result<Self> {
        let lease = set.options.lease.clone();
        let log = (Arc::clone(&set.log), set.set);
        Self::spawn(lease, log, move |shared, log| {
            set.log = log;
            set.options.sort.stop = Arc::clone(&shared.stopping);
            shared.poll(&mut set);
        })
    }

    fn spawn(
        lease: Lease,
        (log, set): (Arc<dyn ChangeLog>, SetId),
        mut run: impl FnMut(&Shared, Arc<dyn ChangeLog>) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let state = Arc::clone(&shared);
        let run = move || {
            run_while_held(&lease, (&log, set), &state.status, &state.stopping, |ending, log| {
                if Arc::ptr_eq(ending, &state.stopping) {
                    run(&state, log);
                } else {
                    // Held deletions of an earlier time are judged again.
                    let (status, stopping) = (Arc::clone(&state.status), Arc::clone(ending));
                    run(&Shared { status, stopping, ..Shared::default() }, log);
                }
            });
        };
        Ok(Self { shared, thread: Some(start_thread("rdf", run)?) })
    }

    /// Returns the status that the watch updates.
    pub fn status(&self) -> &Arc<WatchStatus> {
        &self.shared.status
    }

    /// Requests a stop; a reading in progress is aborted.
    pub fn begin_stop(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        drop(self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.changed.notify_all();
    }

    fn join(&mut self) {
        self.begin_stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for RdfWatch {
    fn drop(&mut self) {
        self.join();
    }
}

impl Shared {
    fn run(&self, folder: &mut RdfFolder) {
        let (mut read, mut last): (Option<Vec<Seen>>, Option<Vec<Seen>>) = (None, None);
        // Start of the wait for a file that is being written, and whether the wait was already
        // logged.
        let mut awaited: Option<(Instant, bool)> = None;
        let mut listed = Listing::default();
        // A scan was requested, and the files were not read since.
        let mut wanted = false;
        while !self.is_stopping() {
            let begun = Instant::now();
            wanted |= self.status.take_scan_wanted();
            let pause = match list(&folder.path, &folder.private) {
                Err(error) => {
                    self.status.set(WatchState::Vanished(error.to_string()));
                    last = None;
                    self.wait(RETRY, false);
                    continue;
                }
                Ok(listing) => {
                    listing.warn(&listed);
                    listed = listing;
                    let files = std::mem::take(&mut listed.files);
                    let pause = (begun.elapsed() * SHARE).clamp(PAUSE.0, PAUSE.1);
                    let confirmed =
                        self.status.is_confirmed() || self.hold_is_over(&folder.options);
                    // Changed files must remain unchanged for a moment.
                    let settled = read.is_none() || last.as_ref() == Some(&files);
                    if read.is_none()
                        && let Ok(Some(report)) = folder.read_before(&files)
                    {
                        self.report(&folder.path.display(), &Ok(report));
                        read = Some(files.clone());
                    }
                    let again = read.as_ref() != Some(&files) || confirmed || wanted;
                    if again && settled {
                        let before = read.as_deref().unwrap_or_default();
                        let result = match seen::unsettled(&files, before, &folder.options.rest) {
                            Some(path) => Err(RdfError::Unsettled(path.to_owned())),
                            None => self.read(folder, &files),
                        };
                        match result {
                            Err(RdfError::Unsettled(path)) => await_file(&path, &mut awaited),
                            Err(error) if is_passing(&error) => {
                                self.wait(RETRY, false);
                                continue;
                            }
                            // Invalid input is not read again until a file changes.
                            Ok(()) | Err(_) => {
                                (read, awaited, wanted) = (Some(files.clone()), None, false);
                            }
                        }
                    }
                    last = Some(files);
                    pause
                }
            };
            self.wait(pause, true);
        }
        self.status.set(WatchState::Stopped);
    }

    /// Replaces the complete state of the set with the files.
    fn read(&self, folder: &mut RdfFolder, files: &[Seen]) -> Result<(), RdfError> {
        self.status.set(WatchState::Scanning);
        let confirmed = self.status.take_confirmed();
        self.begin(&mut folder.options, confirmed, &*folder.log, folder.set);
        let result = folder.replace(files);
        if let Err(RdfError::Unsettled(_)) = &result {
            if confirmed {
                self.status.confirm_deletions();
            }
            return result.map(drop);
        }
        self.report(&folder.path.display(), &result);
        result.map(drop)
    }

    /// Polls an endpoint until the watch is stopped, and replaces the state of the set with each
    /// response.
    fn poll(&self, set: &mut SparqlSet) {
        while !self.is_stopping() {
            self.status.take_scan_wanted();
            self.status.set(WatchState::Scanning);
            let confirmed = self.status.take_confirmed();
            self.begin(&mut set.options, confirmed, &*set.log, set.set);
            let result = set.read();
            self.report(&set.sparql.url, &result);
            let failed = result.is_err();
            if failed && confirmed {
                self.status.confirm_deletions();
            }
            let every = set.sparql.every;
            self.wait(if failed { every.min(ASK_AGAIN) } else { every }, !failed);
        }
        self.status.set(WatchState::Stopped);
    }

    /// Sets the options that determine how the next reading handles deletions.
    fn begin(&self, options: &mut RdfOptions, confirmed: bool, log: &dyn ChangeLog, set: SetId) {
        options.confirm_deletions = confirmed || self.may_delete(options);
        options.record_rest = true;
        let (now, held) = (Instant::now(), *self.held());
        let mut peak = self.peak.lock().unwrap_or_else(PoisonError::into_inner);
        options.peak = match held {
            _ if options.confirm_deletions => {
                peak.forget(now);
                0
            }
            Some((_, before)) => before,
            // If the log cannot be read, the reading fails with the same error.
            None => log.head(set).map_or(0, |head| peak.judged(now, head.resources)),
        };
    }

    fn report(&self, name: &dyn std::fmt::Display, result: &Result<RdfReport, RdfError>) {
        let now = SystemClock.now();
        match result {
            Ok(report) => {
                tracing::info!(
                    "read {name}: {}, {} new, {} changed, {} deleted",
                    count(report.entities, "entity"),
                    report.created,
                    report.updated,
                    report.deleted
                );
                report.warn();
                self.status
                    .set_blank_nodes(report.shared_blank_nodes, report.unreached_blank_nodes);
                self.status.set_held(report.held, report.held_names.clone());
                if let Some(held) = report.held {
                    tracing::warn!(
                        "{name}: the deletion of {} of {} is held (help: if that is right, start with \
                         --confirm-deletions, or confirm it through the API)",
                        held.missing,
                        count(held.of, "entity")
                    );
                    self.held().get_or_insert_with(|| (Instant::now(), held.of));
                } else {
                    *self.held() = None;
                    let mut peak = self.peak.lock().unwrap_or_else(PoisonError::into_inner);
                    peak.note(Instant::now(), report.entities);
                }
                let (problem, count) =
                    (report.problem(), report.left_out + report.invalid_statements);
                self.status.scanned(now, count, problem.into_iter().collect());
                self.status.set(WatchState::Watching);
            }
            Err(RdfError::Statements(abreast_statements::Error::Stopped)) => {}
            Err(RdfError::Endpoint(problem)) => {
                tracing::error!("what was published stays: {problem}");
                self.status.set(WatchState::Vanished(problem.clone()));
            }
            Err(error) if is_passing(error) => {
                let problem = error.text();
                tracing::error!("cannot record {name}: {problem}; retrying");
                self.status.set(WatchState::Failed(problem));
            }
            Err(error) => {
                let problem = format!(
                    "cannot read {name}: {}; what was published stays until that is changed",
                    error.text()
                );
                tracing::error!("{problem}");
                self.status.scanned(now, 1, vec![problem]);
                self.status.set(WatchState::Watching);
            }
        }
    }

    /// Whether the deletions have been held for the configured time.
    fn hold_is_over(&self, options: &RdfOptions) -> bool {
        self.held().is_some_and(|(since, _)| since.elapsed() >= options.hold_deletions)
    }

    /// Whether to record all deletions without the guard.
    fn may_delete(&self, options: &RdfOptions) -> bool {
        options.hold_deletions.is_zero() || self.hold_is_over(options)
    }

    fn held(&self) -> MutexGuard<'_, Option<(Instant, u64)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Waits until the time is over, the watch is stopped or a scan is requested. With
    /// `for_confirmation`, also returns when deletions are confirmed.
    fn wait(&self, time: Duration, for_confirmation: bool) {
        let until = Instant::now() + time;
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !(self.is_stopping()
            || self.status.is_scan_wanted()
            || for_confirmation && self.status.is_confirmed())
        {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            // A confirmation does not wake this thread, so the wait is divided.
            let wait = left.min(PAUSE.0);
            lock = self.changed.wait_timeout(lock, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Logs once that a set waits for a file that is being written.
fn await_file(path: &Path, awaited: &mut Option<(Instant, bool)>) {
    let (since, is_reported) = awaited.get_or_insert_with(|| (Instant::now(), false));
    if !*is_reported && since.elapsed() >= UNCLOSED {
        *is_reported = true;
        tracing::warn!(
            "`{}` is being written; until it is complete, what was published stays",
            visible(&path.to_string_lossy())
        );
    }
}

/// Whether the error is transient, so that the same files may be recorded later.
fn is_passing(error: &RdfError) -> bool {
    match error {
        RdfError::Log(error) => error.kind() != ErrorKind::Refused,
        // Another listing shows when the file can be read.
        RdfError::Statements(abreast_statements::Error::Open { cause, .. }) => {
            !matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
        }
        RdfError::Io(_)
        | RdfError::Temporary { .. }
        | RdfError::Contents(_)
        | RdfError::Statements(abreast_statements::Error::Io(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_does_not_shorten_the_wait_after_a_failure() {
        let shared = Shared::default();
        shared.status.confirm_deletions();
        let (begun, time) = (Instant::now(), Duration::from_millis(50));
        shared.wait(Duration::from_secs(600), true);
        shared.wait(time, false);
        assert!(begun.elapsed() >= time);
    }

    #[test]
    fn deletions_are_held_for_as_long_as_is_wanted() {
        let (shared, mut options) = (Shared::default(), RdfOptions::new("."));
        assert!(!shared.may_delete(&options));
        *shared.held() = Some((Instant::now(), 7));
        assert!(!shared.may_delete(&options));
        options.hold_deletions = Duration::from_millis(1);
        std::thread::sleep(Duration::from_millis(2));
        assert!(shared.may_delete(&options));
        *shared.held() = None;
        assert!(!shared.may_delete(&options));
        options.hold_deletions = Duration::ZERO;
        assert!(shared.may_delete(&options));
    }

    #[test]
    fn a_file_of_unknown_syntax_is_not_tried_again() {
        let error = RdfInput::open(std::path::Path::new("a.txt")).err().unwrap();
        assert!(!is_passing(&error.into()));
    }
}
