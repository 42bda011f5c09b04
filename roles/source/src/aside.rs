//! Large files, read by threads of their own: other changes do not wait for them.
//!
//! A digest is kept by the size, times and inode of the file that was read, and used when the watch
//! reads the path again.

use crate::hash::{Fingerprint, Hashed, Hasher, Reading, Target, fingerprint_of};
use crate::ingest::IngestOptions;
use crate::path_state::{PathState, inspect};
use abreast_contents::PinnedContent;
use abreast_core::State;
use abreast_folder::{Folder, Stat};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Files larger than this are read aside.
pub(crate) const LARGE: u64 = 16 * 1024 * 1024;
/// Paths that may wait; what is beyond is found by the next scan.
const MAX_WAITING: usize = 10_000;
/// Digests kept until they are used.
const MAX_RESULTS: usize = 256;
/// Files read at a time, at most.
const MAX_THREADS: usize = 4;

/// The result of reading one large file.
pub(crate) type Result = (State, Stat, Option<PinnedContent>);

/// The threads that read large files; they end when this is dropped.
pub(crate) struct Aside {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
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

impl Aside {
    /// Ready to read files of a folder; threads start with the first one.
    pub(crate) fn new() -> Self {
        Self { shared: Arc::default(), threads: Vec::new() }
    }

    /// Reads files, as soon as a thread is free.
    pub(crate) fn read(&mut self, folder: &Folder, options: &IngestOptions, paths: Vec<Vec<u8>>) {
        if paths.is_empty() {
            return;
        }
        let mut queue = self.shared.lock();
        for path in paths {
            if queue.waiting.len() < MAX_WAITING && queue.known.insert(path.clone()) {
                queue.waiting.push_back(path);
            }
        }
        let wanted = queue
            .known
            .len()
            .min(MAX_THREADS)
            .min(thread::available_parallelism().map_or(1, usize::from));
        drop(queue);
        while self.threads.len() < wanted {
            let (shared, folder, options) =
                (Arc::clone(&self.shared), folder.clone(), options.clone());
            let thread = thread::Builder::new().name("large files".into());
            match thread.spawn(move || shared.run(&folder, &options)) {
                Ok(thread) => self.threads.push(thread),
                Err(error) => {
                    tracing::error!("cannot start a thread that reads large files: {error}");
                    break;
                }
            }
        }
        self.shared.more.notify_all();
    }

    /// Paths whose files were read since this was last asked, or could not be.
    pub(crate) fn take_ready(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.shared.lock().ready)
    }

    /// The result of the file that has this fingerprint now.
    pub(crate) fn take(&self, witness: &Fingerprint) -> Option<Result> {
        self.shared.lock().results.remove(witness)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Under the lock: a thread that is about to wait sees the flag or the notification.
        drop(self.shared.lock());
        self.shared.more.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Vec<u8>> {
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

    fn run(&self, folder: &Folder, options: &IngestOptions) {
        let reading =
            Reading { stop: &self.stop, aside: None, asks_writers: true, empty: Duration::ZERO };
        let mut hasher = Hasher::new(options, reading);
        while let Some(path) = self.next() {
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let hashed = match inspect(folder, &path) {
                PathState::File(dir) => hasher.hash(&[Target { dir: &dir, name }]).pop(),
                PathState::Folder
                | PathState::LeftOut
                | PathState::Nothing
                | PathState::Unreadable(_) => None,
            };
            let mut queue = self.lock();
            if let Some(Hashed::Stable(state, stat, kept)) = hashed {
                if queue.results.len() >= MAX_RESULTS {
                    // Results of files that changed since are not requested again.
                    queue.results.clear();
                }
                queue.results.insert(fingerprint_of(&stat), (state, stat, kept));
            }
            queue.known.remove(&path);
            queue.ready.push(path);
        }
    }
}
