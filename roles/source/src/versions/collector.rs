//! The collector, which removes versions that the retention policy does not cover, and unused
//! contents.
//!
//! The collector is a thread that works in small steps. A step removes rows from the log, in a
//! transaction that also updates the numbers of references to contents, then deletes contents
//! without references, and then removes these contents from the log. After a crash between two of
//! these, too many contents remain, never too few. If a process was killed before it recorded
//! contents, no row refers to these contents. The collector therefore also compares the folder of
//! contents with the log, one of its 256 parts at a time: all parts after the start, and then once
//! a day.

use crate::scan::ingest::with_causes;
use abreast_core::contents::ContentStore;
use abreast_core::{
    ChangeLog, ContentId, Lease, LogError, Position, SetId, VersionPolicy, start_thread,
};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Changes that are checked in a step; appends to the log wait for the end of the step.
const STEP: usize = 64;
/// Contents that are deleted in a step.
const REMOVE_STEP: usize = 64;
/// Time between steps while there is something to do, and between checks otherwise.
const PAUSE: Duration = Duration::from_millis(5);
const CHECK: Duration = Duration::from_secs(1);
/// Interval between two checks for versions that exceed the maximum age.
const AGE_CHECK: Duration = Duration::from_secs(60);
/// Interval between two comparisons of the whole folder with the log.
const SWEEP: Duration = Duration::from_secs(24 * 3_600);
/// Pause after an error of the log or the folder.
const RETRY: Duration = Duration::from_secs(10);

/// A set with stored versions, and their retention policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSet {
    /// Number of the set in the log.
    pub set: SetId,
    /// Name of the set in URLs, a label of metrics.
    pub slug: String,
    /// Rules for the versions that are retained.
    pub policy: VersionPolicy,
}

#[derive(Debug, Error)]
enum CollectError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Contents(#[from] abreast_core::contents::Error),
}

/// A running collector. Stop the collector with [`Collector::stop`]; dropping the value also stops
/// it.
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
    /// Waits until the time is over or a stop is requested. Returns whether a stop was requested.
    fn wait(&self, time: Duration) -> bool {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let requested = || self.requested.load(Ordering::SeqCst);
        let waited = self.changed.wait_timeout_while(lock, time, |()| !requested());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        requested()
    }
}

impl Collector {
    /// Starts the collector, which works while the lease is held. The folder must not be shared with
    /// another log: contents that are not in this log are deleted.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(
        log: Arc<dyn ChangeLog>,
        contents: Arc<dyn ContentStore>,
        sets: Vec<KeptSet>,
        lease: Lease,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let stopped = Arc::clone(&stop);
        let mut work = Work::new(log, contents, sets);
        let thread = start_thread("collector", move || {
            loop {
                let step = if lease.is_held() { work.step() } else { Ok(false) };
                let pause = match step {
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

    /// Stops the collector at the end of the current step.
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

/// Collects all versions and contents that are due, including a comparison of the folder with the
/// log.
///
/// # Errors
/// The log or the folder of contents fails.
pub fn collect_all(
    log: Arc<dyn ChangeLog>,
    contents: Arc<dyn ContentStore>,
    sets: Vec<KeptSet>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut work = Work::new(log, contents, sets);
    while work.step()? {}
    Ok(())
}

/// Progress of the collector in a set.
struct Checked {
    at: Position,
    when: Option<Instant>,
    complete: bool,
}

struct Work {
    log: Arc<dyn ChangeLog>,
    contents: Arc<dyn ContentStore>,
    sets: Vec<KeptSet>,
    checked: Vec<Checked>,
    /// Whether contents without references may exist.
    unneeded: bool,
    /// The next part of the folder to compare; `None` between two comparisons.
    part: Option<u8>,
    swept: Instant,
    /// Contents deleted in the current comparison.
    removed: u64,
}

impl Work {
    fn new(log: Arc<dyn ChangeLog>, contents: Arc<dyn ContentStore>, sets: Vec<KeptSet>) -> Self {
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

    /// Runs a step. Returns whether the next step should follow without a pause.
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
                // A change can remove the last reference to contents even if no version was
                // dropped.
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

    /// Deletes contents without references, and then removes them from the log. The reverse order
    /// could leave contents that the log does not list.
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

    /// Deletes contents in a part of the folder that are not in the log.
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
        let mut failed = None;
        let mut needed = || {
            self.log.needs_content(id).unwrap_or_else(|error| {
                failed = Some(error);
                true
            })
        };
        let removed = self.contents.remove_unless(id, &mut needed)?;
        failed.map_or(Ok(removed), |error| Err(error.into()))
    }
}
