//! Large files that wait to be read aside, and the results of those that were read.

use crate::names::fingerprint::{Fingerprint, fingerprint_of};
use abreast_contents::PinnedContent;
use abreast_core::State;
use abreast_folder::Stat;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Files larger than this are read aside.
pub(super) const LARGE: u64 = 16 * 1024 * 1024;
/// Paths that may wait; what is beyond is found by the next scan.
const MAX_WAITING: usize = 10_000;
/// Digests kept until they are used.
const MAX_RESULTS: usize = 256;

/// The result of reading one large file.
pub(super) type Result = (State, Stat, Option<PinnedContent>);

/// The queue of the threads that read large files.
#[derive(Default)]
pub(crate) struct LargeFiles {
    queue: Mutex<Queue>,
    more: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Vec<u8>>,
    /// Waiting, or being read.
    known: HashSet<Vec<u8>>,
    /// Read, and to be recorded by the watch.
    ready: Vec<Vec<u8>>,
    results: HashMap<Fingerprint, Result>,
}

impl LargeFiles {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next file; waits for one. `None` when reading is to end.
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

    /// Notes that a file was read.
    pub(super) fn finish(&self, path: Vec<u8>, result: Option<Result>) {
        let mut queue = self.lock();
        if let Some(result) = result {
            if queue.results.len() >= MAX_RESULTS {
                // Results of files that changed since are not requested again.
                queue.results.clear();
            }
            queue.results.insert(fingerprint_of(&result.1), result);
        }
        queue.known.remove(&path);
        queue.ready.push(path);
    }

    /// Adds files to be read; returns how many are waiting or being read.
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

    /// Ends the threads that wait for a file, and reading.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // Under the lock: a thread that is about to wait sees the flag or the notification.
        drop(self.lock());
        self.wake();
    }

    /// Set when reading is to end.
    pub(super) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Paths whose files were read since this was last asked, or could not be.
    pub(super) fn take_ready(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.lock().ready)
    }

    /// The result of the file that has this fingerprint now.
    pub(super) fn take(&self, witness: &Fingerprint) -> Option<Result> {
        self.lock().results.remove(witness)
    }
}
