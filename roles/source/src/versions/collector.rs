//! The collector: drops the versions that no policy keeps, and the bytes that no version needs.
//!
//! One thread, in small steps. First the rows go, by the log, in one transaction with the counts of
//! the references to contents; then contents without references; then the log forgets them. A crash
//! in between leaves too many contents, never too few. Bytes that no row ever named (a process was
//! killed before it recorded them) are found by comparing the folder with the log: one of its 256
//! parts at a time, all of them after the start, then once a day.

use crate::scan::ingest::with_causes;
use abreast_contents::Contents;
use abreast_core::{ChangeLog, ContentId, LogError, Position, SetId, VersionPolicy};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Changes checked in one step, for which new changes wait.
const STEP: usize = 64;
/// Contents removed in one step.
const REMOVE_STEP: usize = 64;
/// Time between steps while there is something to do, and between checks otherwise.
const PAUSE: Duration = Duration::from_millis(5);
const CHECK: Duration = Duration::from_secs(1);
/// How often versions are checked for their age.
const AGE_CHECK: Duration = Duration::from_secs(60);
/// Time from one comparison of the whole folder with the log to the next.
const SWEEP: Duration = Duration::from_secs(24 * 3_600);
/// After a failure.
const RETRY: Duration = Duration::from_secs(10);

/// A set whose versions are kept.
#[derive(Clone, Debug)]
pub struct KeptSet {
    /// Its number in the log.
    pub set: SetId,
    /// The name of the set, for metrics.
    pub slug: String,
    /// The versions that are kept.
    pub policy: VersionPolicy,
}

#[derive(Debug, Error)]
enum CollectError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Contents(#[from] abreast_contents::Error),
}

/// The running collector; stopped by [`Collector::stop`], or when dropped.
pub struct Collector {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    requested: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Stop {
    /// Waits until the time is over or a stop is requested; returns whether it was requested.
    fn wait(&self, time: Duration) -> bool {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let requested = || self.requested.load(Ordering::SeqCst);
        let waited = self.changed.wait_timeout_while(lock, time, |()| !requested());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        requested()
    }
}

impl Collector {
    /// Starts collecting. The folder belongs to this log alone: what no set of it names is removed.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        log: Arc<dyn ChangeLog>,
        contents: Contents,
        sets: Vec<KeptSet>,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let stopped = Arc::clone(&stop);
        let mut work = Work::new(log, contents, sets);
        let thread = std::thread::Builder::new().name("collector".into()).spawn(move || {
            loop {
                let pause = match work.step() {
                    Ok(true) => PAUSE,
                    Ok(false) => CHECK,
                    Err(error) => {
                        tracing::error!(
                            "cannot collect old versions: {}; retrying",
                            with_causes(&error)
                        );
                        RETRY
                    }
                };
                if stopped.wait(pause) {
                    return;
                }
            }
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops after the step under way.
    pub fn stop(mut self) {
        self.join();
    }

    fn join(&mut self) {
        self.stop.requested.store(true, Ordering::SeqCst);
        drop(self.stop.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.join();
    }
}

/// Collects all that is due now, the folder compared with the log included.
///
/// # Errors
/// When the log or the folder fails.
pub fn collect_all(
    log: Arc<dyn ChangeLog>,
    contents: Contents,
    sets: Vec<KeptSet>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut work = Work::new(log, contents, sets);
    while work.step()? {}
    Ok(())
}

/// The state of a set between two checks.
struct Checked {
    at: Position,
    when: Option<Instant>,
    complete: bool,
}

struct Work {
    log: Arc<dyn ChangeLog>,
    contents: Contents,
    sets: Vec<KeptSet>,
    checked: Vec<Checked>,
    /// Whether there may be contents without references.
    unneeded: bool,
    /// The next part of the folder to compare, and when to begin again.
    part: Option<u8>,
    swept: Instant,
    /// Contents removed from the parts that were compared since it began.
    removed: u64,
}

impl Work {
    fn new(log: Arc<dyn ChangeLog>, contents: Contents, sets: Vec<KeptSet>) -> Self {
        let checked =
            sets.iter().map(|_| Checked { at: Position(0), when: None, complete: false }).collect();
        Self {
            log,
            contents,
            sets,
            checked,
            unneeded: true,
            part: Some(0),
            swept: Instant::now(),
            removed: 0,
        }
    }

    /// Does one step; returns whether there is more to do at once.
    fn step(&mut self) -> Result<bool, CollectError> {
        let mut more = self.drop_versions()?;
        if self.unneeded || more {
            more |= self.remove_unneeded()?;
        }
        if self.part.is_none() && self.swept.elapsed() > SWEEP {
            self.part = Some(0);
        }
        if let (false, Some(part)) = (more, self.part) {
            self.sweep(part)?;
            self.part = part.checked_add(1);
            self.swept = Instant::now();
            more = self.part.is_some();
            let removed = if more { 0 } else { std::mem::take(&mut self.removed) };
            if removed > 0 {
                tracing::info!(removed, "removed kept contents that nothing needs");
            }
        }
        Ok(more)
    }

    fn drop_versions(&mut self) -> Result<bool, CollectError> {
        let mut more = false;
        for (set, checked) in self.sets.iter().zip(&mut self.checked) {
            let head = self.log.head(set.set)?;
            let aged = set.policy.age.is_some()
                && checked.when.is_none_or(|when| when.elapsed() > AGE_CHECK);
            if head.importing || (checked.complete && head.position == checked.at && !aged) {
                continue;
            }
            let done = self.log.collect_versions(set.set, &set.policy, STEP)?;
            if done.complete {
                // Whether or not versions were dropped, a change may have let bytes go.
                self.unneeded |= checked.at != head.position || done.dropped > 0;
                (checked.at, checked.when) = (head.position, Some(Instant::now()));
            }
            checked.complete = done.complete;
            self.unneeded |= done.dropped > 0;
            more |= !done.complete;
            metrics::gauge!("abreast_kept_bytes", "set" => set.slug.clone())
                .set(done.kept_bytes as f64);
            metrics::counter!("abreast_versions_dropped_total", "set" => set.slug.clone())
                .increment(done.dropped);
        }
        Ok(more)
    }

    /// First the bytes, then the log's account of them.
    fn remove_unneeded(&mut self) -> Result<bool, CollectError> {
        let ids = self.log.unneeded_contents(None, REMOVE_STEP)?;
        for id in &ids {
            self.remove(id)?;
        }
        self.unneeded = ids.len() == REMOVE_STEP;
        if !ids.is_empty() {
            self.log.forget_contents(ids)?;
        }
        Ok(self.unneeded)
    }

    /// Removes what is in one part of the folder and in no row.
    fn sweep(&mut self, part: u8) -> Result<(), CollectError> {
        let mut found = Vec::new();
        self.contents.visit(part, &mut |id| {
            found.push(id);
            ControlFlow::Continue(())
        })?;
        for id in &found {
            if !self.log.needs_content(id)? {
                self.removed += u64::from(self.remove(id)?);
            }
        }
        Ok(())
    }

    fn remove(&self, id: &ContentId) -> Result<bool, CollectError> {
        self.contents.remove_unless(id, || Ok(self.log.needs_content(id)?))
    }
}
