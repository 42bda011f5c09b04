//! Large files, read by threads of their own: other changes do not wait for them.
//!
//! A digest is kept by the size, times and inode of the file that was read, and used when the watch
//! reads the path again.

use super::hash::{Hashed, Hasher, Reading, Target};
use super::large::LargeFiles;
use super::options::IngestOptions;
use crate::names::path_state::{PathState, inspect};
use abreast_folder::Folder;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Files read at a time, at most.
const MAX_THREADS: usize = 4;

/// The threads that read large files; they end when this is dropped.
pub(crate) struct Aside {
    files: Arc<LargeFiles>,
    threads: Vec<JoinHandle<()>>,
}

impl Aside {
    /// Ready to read files of a folder; threads start with the first one.
    pub(crate) fn new() -> Self {
        Self { files: Arc::default(), threads: Vec::new() }
    }

    /// Reads files, as soon as a thread is free.
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
            let thread = thread::Builder::new().name("large files".into());
            match thread.spawn(move || run(&files, &folder, &options)) {
                Ok(thread) => self.threads.push(thread),
                Err(error) => {
                    tracing::error!("cannot start a thread that reads large files: {error}");
                    break;
                }
            }
        }
        self.files.wake();
    }

    /// Paths whose files were read since this was last asked, or could not be.
    pub(crate) fn take_ready(&self) -> Vec<Vec<u8>> {
        self.files.take_ready()
    }

    /// The files that it reads.
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
