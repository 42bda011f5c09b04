//! Watches a folder of RDF files: together they are the complete state of a set.
//!
//! The names, sizes and times of the files are compared again and again; when they differ, and have
//! stayed the same for a moment, all of them are read.

use super::{RdfError, RdfInput, RdfOptions, RdfReport, RdfTarget};
use crate::names::is_published_name;
use crate::{WatchState, WatchStatus};
use abreast_contents::Contents;
use abreast_core::{ChangeLog, Clock as _, ErrorKind, SetId, SystemClock};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shortest and longest time between two comparisons of the files.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// After a failure of the store.
const RETRY: Duration = Duration::from_secs(10);
/// A comparison takes at most this part of the time.
const SHARE: u32 = 50;
/// Most files of a folder.
const MAX_FILES: usize = 1_000_000;

/// A set whose entities are described by the files of a folder.
#[derive(Clone)]
pub struct RdfFolder {
    /// The folder.
    pub path: PathBuf,
    /// The log.
    pub log: Arc<dyn ChangeLog>,
    /// The set.
    pub set: SetId,
    /// Where descriptions are kept.
    pub contents: Contents,
    /// How files are read.
    pub options: RdfOptions,
}

impl RdfFolder {
    /// Makes the files, as they are now, the complete state of the set.
    ///
    /// # Errors
    /// The folder or a file cannot be read, or too much would be deleted: nothing is recorded then.
    /// Or the log, the contents or the disk fail.
    pub fn read(&self) -> Result<RdfReport, RdfError> {
        self.replace(&list(&self.path)?)
    }

    fn replace(&self, files: &[Seen]) -> Result<RdfReport, RdfError> {
        let inputs = files.iter().map(|file| RdfInput::open(&file.path));
        let target = RdfTarget {
            log: &*self.log,
            set: self.set,
            contents: &self.contents,
            options: &self.options,
        };
        super::replace(target, inputs, SystemClock.now())
    }
}

/// A running watch.
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
}

/// What is compared of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    path: PathBuf,
    size: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl RdfWatch {
    /// Starts watching.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(mut folder: RdfFolder) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        folder.options.sort.stop = Arc::clone(&shared.stopping);
        let state = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("rdf".into()).spawn(move || state.run(&mut folder))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The state of the watch.
    pub fn status(&self) -> &Arc<WatchStatus> {
        &self.shared.status
    }

    /// Begins to stop: what is being read is given up.
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
        while !self.is_stopping() {
            let begun = Instant::now();
            let pause = match list(&folder.path) {
                Err(error) => {
                    self.status.set(WatchState::Vanished(error.to_string()));
                    last = None;
                    self.wait(RETRY, false);
                    continue;
                }
                Ok(files) => {
                    let pause = (begun.elapsed() * SHARE).clamp(PAUSE.0, PAUSE.1);
                    let confirmed = self.status.is_confirmed();
                    // What is new must stay as it is for a moment; at the start it is taken as it is.
                    let settled = read.is_none() || last.as_ref() == Some(&files);
                    let again = read.as_ref() != Some(&files) || confirmed;
                    if again && settled {
                        if self.read(folder, &files).is_err_and(|error| is_passing(&error)) {
                            self.wait(RETRY, false);
                            continue;
                        }
                        // What is wrong stays so until it is changed.
                        read = Some(files.clone());
                    }
                    last = Some(files);
                    pause
                }
            };
            self.wait(pause, true);
        }
        self.status.set(WatchState::Stopped);
    }

    /// Makes the files the complete state of the set.
    fn read(&self, folder: &mut RdfFolder, files: &[Seen]) -> Result<(), RdfError> {
        self.status.set(WatchState::Scanning);
        folder.options.confirm_deletions = self.status.take_confirmed();
        let result = folder.replace(files);
        let now = SystemClock.now();
        match &result {
            Ok(report) => {
                tracing::info!(
                    "read {}: {} entities, {} new, {} changed, {} deleted",
                    folder.path.display(),
                    report.entities,
                    report.created,
                    report.updated,
                    report.deleted
                );
                report.warn();
                self.status.set_held(None);
                self.status.scanned(now, 0);
                self.status.set(WatchState::Watching);
            }
            Err(RdfError::Statements(abreast_statements::Error::Stopped)) => {}
            Err(RdfError::Deletions { held }) => {
                tracing::warn!(
                    "{}: {} of {} entities would be deleted; nothing was recorded (help: if that is right, \
                     start with --confirm-deletions, or confirm it through the API)",
                    folder.path.display(),
                    held.missing,
                    held.of
                );
                self.status.set_held(Some(*held));
                self.status.scanned(now, 0);
                self.status.set(WatchState::Watching);
            }
            Err(error) if is_passing(error) => {
                tracing::error!("cannot record {}: {error}; retrying", folder.path.display());
                self.status.set(WatchState::Failed(error.to_string()));
            }
            Err(error) => {
                let cause = std::error::Error::source(error)
                    .map_or(String::new(), |cause| format!(": {cause}"));
                tracing::error!(
                    "cannot read {}: {error}{cause}; what was published stays until the file is changed",
                    folder.path.display()
                );
                self.status.scanned(now, 1);
                self.status.set(WatchState::Watching);
            }
        }
        result.map(drop)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Waits until the time is over, the watch is stopped, or, unless after a failure, deletions are
    /// confirmed.
    fn wait(&self, time: Duration, for_confirmation: bool) {
        let until = Instant::now() + time;
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !(self.is_stopping() || for_confirmation && self.status.is_confirmed()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            // A confirmation does not wake this thread.
            let wait = left.min(PAUSE.0);
            lock = self.changed.wait_timeout(lock, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Whether the same files may be recorded later.
fn is_passing(error: &RdfError) -> bool {
    match error {
        RdfError::Log(error) => error.kind() != ErrorKind::Refused,
        // The name of a file that cannot be read stays what it is.
        RdfError::Io(error) => error.kind() != io::ErrorKind::InvalidInput,
        RdfError::Contents(_) | RdfError::Statements(abreast_statements::Error::Io(_)) => true,
        _ => false,
    }
}

/// The files with descriptions beneath a folder, in the order of their paths. Hidden names are left
/// out, and links are not followed.
fn list(folder: &Path) -> io::Result<Vec<Seen>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next)? {
            let entry = entry?;
            if !is_published_name(entry.file_name().as_bytes()) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && abreast_rdf::Syntax::of_file_name(&entry.file_name().to_string_lossy()).is_some()
            {
                let Ok(found) = entry.metadata() else { continue };
                files.push(Seen {
                    path: entry.path(),
                    size: found.len(),
                    inode: found.ino(),
                    modified: (found.mtime(), found.mtime_nsec()),
                    changed: (found.ctime(), found.ctime_nsec()),
                });
                if files.len() > MAX_FILES {
                    return Err(io::Error::other(format!("it has more than {MAX_FILES} files")));
                }
            }
        }
    }
    files.sort_unstable();
    Ok(files)
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
    fn a_file_of_unknown_compression_is_not_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.nt.xz");
        std::fs::write(&path, "").unwrap();
        let error = RdfInput::open(&path).err().unwrap();
        assert!(!is_passing(&error.into()));
    }
}
