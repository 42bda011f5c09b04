//! Steps of making a file, for tests: a test can observe each step, or return an error for a step.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Function that is called with the number and the path of a step.
type Watch = Arc<dyn Fn(usize, &Path) -> io::Result<()> + Send + Sync>;

static WATCHES: Mutex<Option<HashMap<PathBuf, (usize, Watch)>>> = Mutex::new(None);
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Calls `watch` at every step below a folder, until this is dropped.
pub(crate) struct Watched(PathBuf);

impl Watched {
    pub(crate) fn begin(
        folder: &Path,
        watch: impl Fn(usize, &Path) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let mut watches = WATCHES.lock().unwrap_or_else(PoisonError::into_inner);
        watches.get_or_insert_default().insert(folder.to_owned(), (0, Arc::new(watch)));
        Self(folder.to_owned())
    }

    /// Number of steps until now.
    pub(crate) fn count(&self) -> usize {
        let watches = WATCHES.lock().unwrap_or_else(PoisonError::into_inner);
        watches.as_ref().and_then(|watches| watches.get(&self.0)).map_or(0, |(count, _)| *count)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut watches = WATCHES.lock().unwrap_or_else(PoisonError::into_inner);
        watches.get_or_insert_default().remove(&self.0);
    }
}

/// A step with this path.
pub(crate) fn at(path: &Path) -> io::Result<()> {
    let found = {
        let mut watches = WATCHES.lock().unwrap_or_else(PoisonError::into_inner);
        let watches = watches.get_or_insert_default();
        watches.iter_mut().find(|(folder, _)| path.starts_with(folder)).map(
            |(_, (count, watch))| {
                *count += 1;
                (*count, Arc::clone(watch))
            },
        )
    };
    found.map_or(Ok(()), |(number, watch)| watch(number, path))
}

/// A step with this open file.
pub(crate) fn of(file: &File) -> io::Result<()> {
    at(&std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?)
}

/// Collects the message of a failure, for tests.
pub(crate) fn told(message: &str) {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).push(message.to_owned());
}

/// Returns the collected messages that contain this text.
pub(crate) fn messages(text: &str) -> Vec<String> {
    let told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    told.iter().filter(|message| message.contains(text)).cloned().collect()
}
