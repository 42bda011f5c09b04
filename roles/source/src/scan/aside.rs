//! Reading of large files in separate threads, so that other changes are not delayed.
//!
//! The result is stored by size, times and inode of the file, and is used when the watch reads the
//! path again.

use super::hash::{Hashed, Hasher, Reading, Target};
use super::large::LargeFiles;
use super::options::IngestOptions;
use crate::names::path_state::{PathState, inspect};
use abreast_core::start_thread;
use abreast_folder::Folder;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Most files that are read at the same time.
const MAX_THREADS: usize = 4;

/// Threads that read large files; dropping the value stops the threads.
pub(crate) struct Aside {
    files: Arc<LargeFiles>,
    threads: Vec<JoinHandle<()>>,
}

impl Aside {
    /// Creates the queue; the first file starts the threads.
    pub(crate) fn new() -> Self {
        Self { files: Arc::default(), threads: Vec::new() }
    }

    /// Queues files of a folder, which are read when a thread is available.
    pub(crate) fn read(&mut self, folder: &Folder, options: &IngestOptions, paths: Vec<Vec<u8>>) {
        if paths.is_empty() {
            return;
        }
        let wanted = self
            .files
            .add(paths)
            .min(MAX_THREADS)
            .min(thread::available_parallelism().map_or(1, usize::from));
        while self.threads.len() < wanted {
            let (files, folder, options) =
                (Arc::clone(&self.files), folder.clone(), options.clone());
            match start_thread("large files", move || run(&files, &folder, &options)) {
                Ok(thread) => self.threads.push(thread),
                Err(error) => {
                    tracing::error!("cannot start a thread that reads large files: {error}");
                    break;
                }
            }
        }
        self.files.wake();
    }

    /// Returns the paths of files that were read, or failed, since the last call.
    pub(crate) fn take_ready(&self) -> Vec<Vec<u8>> {
        self.files.take_ready()
    }

    /// Returns the queue of files, which also contains the results.
    pub(super) fn files(&self) -> &LargeFiles {
        &self.files
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.files.end();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn run(files: &LargeFiles, folder: &Folder, options: &IngestOptions) {
    let reading =
        Reading { stop: files.stop(), aside: None, asks_writers: true, empty: Duration::ZERO };
    let mut hasher = Hasher::new(options, reading);
    while let Some(path) = files.next() {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let hashed = match inspect(folder, &path) {
            PathState::File(dir) => hasher.hash(&[Target { dir: &dir, name }]).pop(),
            PathState::Folder
            | PathState::LeftOut
            | PathState::Nothing
            | PathState::Unreadable(_) => None,
        };
        let result = match hashed {
            Some(Hashed::Stable(state, stat, kept)) => Some((state, stat, kept)),
            _ => None,
        };
        files.finish(path, result);
    }
}
