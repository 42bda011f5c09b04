//! Queue of large files that separate threads read, and the results.

use crate::names::fingerprint::{Fingerprint, fingerprint_of};
use abreast_core::State;
use abreast_core::contents::PinnedContent;
use abreast_folder::Stat;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Size in bytes above which separate threads read a file.
pub(super) const LARGE: u64 = 16 * 1024 * 1024;
/// Most paths in the queue. The next scan finds further files.
const MAX_WAITING: usize = 10_000;
/// Most results in memory until the watch records them.
const MAX_RESULTS: usize = 256;

/// Result of reading a large file: state, metadata and stored copy.
pub(super) type Result = (State, Stat, Option<PinnedContent>);

/// Queue of the threads that read large files.
#[derive(Default)]
pub(crate) struct LargeFiles {
    queue: Mutex<Queue>,
    more: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Vec<u8>>,
    /// Paths that are in the queue or are being read.
    known: HashSet<Vec<u8>>,
    /// Paths that were read, and that the watch must record.
    ready: Vec<Vec<u8>>,
    results: HashMap<Fingerprint, Result>,
}

impl LargeFiles {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a file and returns its path; `None` if the threads must end.
    pub(super) fn next(&self) -> Option<Vec<u8>> {
        let mut queue = self.lock();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(path) = queue.waiting.pop_front() {
                return Some(path);
            }
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds the result of reading a file.
    pub(super) fn finish(&self, path: Vec<u8>, result: Option<Result>) {
        let mut queue = self.lock();
        if let Some(result) = result {
            if queue.results.len() >= MAX_RESULTS {
                // Results of files that have changed since are never requested. Remove all results,
                // to free the space.
                queue.results.clear();
            }
            queue.results.insert(fingerprint_of(&result.1), result);
        }
        queue.known.remove(&path);
        queue.ready.push(path);
    }

    /// Adds files to the queue. Returns the number of files that are in the queue or are being
    /// read.
    pub(super) fn add(&self, paths: Vec<Vec<u8>>) -> usize {
        let mut queue = self.lock();
        for path in paths {
            if queue.waiting.len() < MAX_WAITING && queue.known.insert(path.clone()) {
                queue.waiting.push_back(path);
            }
        }
        queue.known.len()
    }

    /// Wakes the threads that wait for a file.
    pub(super) fn wake(&self) {
        self.more.notify_all();
    }

    /// Stops the threads, including a thread that is reading a file.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // The lock ensures that a thread that is about to wait sees the flag or the notification.
        drop(self.lock());
        self.wake();
    }

    /// Flag that stops the reading of files.
    pub(super) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Returns the paths of files that were read, or failed, since the last call.
    pub(super) fn take_ready(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.lock().ready)
    }

    /// Removes and returns the result of the file with this fingerprint.
    pub(super) fn take(&self, witness: &Fingerprint) -> Option<Result> {
        self.lock().results.remove(witness)
    }
}
