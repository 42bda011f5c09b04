//! Local copies of shared files: fetched at the first request, one fetch of a file at a time, and
//! removed in the order of their last use when they exceed the limit.

use super::error::SharedError;
use crate::made::file::MadeFile;
use crate::made::making::Making;
use crate::made::sweep::discard;
use abreast_webtypes::Timestamp;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Most files that a node fetches from the object store at a time.
const MOST_FETCHES: usize = 4;
/// Longest wait of a request for the fetch of another request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Local copies of the shared files of all groups.
pub(super) struct Cache {
    /// Total length in bytes above which copies are removed.
    limit: u64,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    copies: HashMap<PathBuf, Copied>,
    fetching: HashMap<PathBuf, u64>,
    /// Number of uses until now.
    uses: u64,
}

struct Copied {
    length: u64,
    /// Number of the last use.
    used: u64,
    /// Number of requests that read the copy.
    holds: usize,
}

/// A local copy that is not removed while this value lives.
pub(crate) struct Held {
    path: PathBuf,
    cache: Arc<Cache>,
}

impl Held {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(&self.path)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(copy) = self.cache.lock().copies.get_mut(&self.path) {
            copy.holds = copy.holds.saturating_sub(1);
        }
    }
}

impl State {
    /// Notes a use of a copy of this length; `None` if it is not in the folder.
    fn hold(&mut self, path: &Path, length: u64) -> Option<()> {
        let copy = self.copies.get_mut(path)?;
        if path.metadata().is_ok_and(|found| found.len() == length) {
            self.uses += 1;
            (copy.used, copy.holds) = (self.uses, copy.holds + 1);
            return Some(());
        }
        self.copies.remove(path);
        None
    }

    fn insert(&mut self, path: PathBuf, length: u64, holds: usize) {
        self.uses += 1;
        self.copies.insert(path, Copied { length, used: self.uses, holds });
    }

    /// Copies that must be removed so that all have at most `limit` bytes.
    fn surplus(&mut self, limit: u64) -> Vec<PathBuf> {
        let copied: u64 = self.copies.values().map(|copy| copy.length).sum();
        let mut bytes = copied.saturating_add(self.fetching.values().sum());
        if bytes <= limit {
            return Vec::new();
        }
        let unheld = self.copies.iter().filter(|(_, copy)| copy.holds == 0);
        let mut oldest: Vec<_> =
            unheld.map(|(path, copy)| (copy.used, copy.length, path.clone())).collect();
        oldest.sort_unstable();
        let mut surplus = Vec::new();
        for (_, length, path) in oldest {
            if bytes <= limit {
                break;
            }
            bytes -= length;
            self.copies.remove(&path);
            surplus.push(path);
        }
        surplus
    }
}

impl Cache {
    pub(super) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, state: Mutex::default(), ended: Condvar::new() })
    }

    /// Notes a copy that exists in the folder.
    pub(super) fn add(&self, path: PathBuf, length: u64) {
        let mut state = self.lock();
        state.insert(path, length, 0);
        discard(state.surplus(self.limit));
    }

    /// Removes the copies below a path.
    pub(super) fn remove(&self, path: PathBuf) {
        let mut state = self.lock();
        state.copies.retain(|copy, _| !copy.starts_with(&path));
        discard([path]);
    }

    /// Returns the copy of a file, which `fetch` writes if it does not exist.
    pub(super) fn hold(
        self: &Arc<Self>,
        path: &Path,
        length: u64,
        modified: Timestamp,
        mut fetch: impl FnMut(&mut BufWriter<MadeFile>) -> Result<(), SharedError>,
    ) -> Result<Held, SharedError> {
        let held = || Held { path: path.to_owned(), cache: Arc::clone(self) };
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.lock();
        while state.hold(path, length).is_none() {
            if !state.fetching.contains_key(path) && state.fetching.len() < MOST_FETCHES {
                state.fetching.insert(path.to_owned(), length);
                discard(state.surplus(self.limit));
                drop(state);
                let mut fetched = write(path, length, modified, &mut fetch);
                if fetched.as_ref().is_err_and(SharedError::is_of_full_disk) {
                    // The disk is smaller than the limit: all copies that are not in use give way.
                    discard(self.lock().surplus(0));
                    fetched = write(path, length, modified, &mut fetch);
                }
                let mut state = self.lock();
                state.fetching.remove(path);
                if fetched.is_ok() {
                    state.insert(path.to_owned(), length, 1);
                }
                drop(state);
                self.ended.notify_all();
                return fetched.map(|()| held());
            }
            let Some(wait) = deadline.checked_duration_since(Instant::now()) else {
                return Err(SharedError::Fetching);
            };
            let waited = self.ended.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        Ok(held())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a copy under another name, and renames the complete copy.
fn write(
    path: &Path,
    length: u64,
    modified: Timestamp,
    fetch: impl FnOnce(&mut BufWriter<MadeFile>) -> Result<(), SharedError>,
) -> Result<(), SharedError> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut making = Making::begin(folder);
    let mut file = making.file(&name, length)?;
    fetch(&mut file)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync()?;
    set_modified(&making.path(&name), modified)?;
    making.publish(&name)?;
    Ok(())
}

/// Sets the modification time of a file, which is the same on all nodes.
pub(super) fn set_modified(path: &Path, time: Timestamp) -> io::Result<()> {
    let since = Duration::from_micros(u64::try_from(time.as_micros()).unwrap_or_default());
    File::options().append(true).open(path)?.set_modified(UNIX_EPOCH + since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    const TIME: Timestamp = Timestamp::from_seconds(1_767_225_600);

    fn get(cache: &Arc<Cache>, path: &Path, bytes: &[u8]) -> Result<Held, SharedError> {
        cache.hold(path, bytes.len() as u64, TIME, |file| Ok(file.write_all(bytes)?))
    }

    #[test]
    fn copies_above_the_limit_are_removed_in_the_order_of_use() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::new(10);
        let path = |name: &str| place.path().join("ab").join(name);
        for name in ["a", "b", "a", "c"] {
            drop(get(&cache, &path(name), b"1234").unwrap());
        }
        let exists = ["a", "b", "c"].map(|name| path(name).exists());
        assert_eq!(exists, [true, false, true]);
        let held = get(&cache, &path("a"), b"1234").unwrap();
        drop(get(&cache, &path("large"), &[b'x'; 40]).unwrap());
        assert!(held.path().exists(), "a held copy remains");
        assert!(path("large").exists() && !path("c").exists());
        drop(held);
        drop(get(&cache, &path("b"), b"1234").unwrap());
        assert!(!path("large").exists() && !path("making-b").exists());
        let time = path("b").metadata().unwrap().modified().unwrap();
        assert_eq!(time, UNIX_EPOCH + Duration::from_secs(1_767_225_600));
        cache.remove(place.path().join("ab"));
        assert!(!path("b").exists() && cache.lock().copies.is_empty());
    }

    #[test]
    fn copies_give_way_to_a_file_on_a_full_disk() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::new(1_000);
        let path = |name: &str| place.path().join(name);
        let held = get(&cache, &path("held"), b"1234").unwrap();
        drop(get(&cache, &path("old"), b"1234").unwrap());
        let is_full = || path("old").exists();
        let fetch = |file: &mut BufWriter<MadeFile>| {
            if is_full() {
                return Err(io::Error::from(io::ErrorKind::StorageFull).into());
            }
            Ok(file.write_all(b"1234")?)
        };
        drop(cache.hold(&path("new"), 4, TIME, fetch).unwrap());
        assert!(held.path().exists() && path("new").exists() && !path("old").exists());
        let full =
            |_: &mut BufWriter<MadeFile>| Err(io::Error::from(io::ErrorKind::StorageFull).into());
        assert!(cache.hold(&path("more"), 4, TIME, full).is_err(), "it is tried once again");
    }

    #[test]
    fn a_file_is_fetched_once_for_all_requests_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let (cache, path) = (Cache::new(1_000), place.path().join("a"));
        let fetches = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let held = cache.hold(&path, 4, TIME, |file| {
                        fetches.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(50));
                        Ok(file.write_all(b"1234")?)
                    });
                    assert_eq!(fs::read(held.unwrap().path()).unwrap(), b"1234");
                });
            }
        });
        assert_eq!(fetches.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_failed_fetch_leaves_no_copy_and_a_waiting_request_fetches() {
        let place = tempfile::tempdir().unwrap();
        let (cache, path) = (Cache::new(1_000), place.path().join("a"));
        let (begun, begins) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let failed = cache.hold(&path, 4, TIME, |file| {
                    begun.send(()).unwrap();
                    file.write_all(b"12")?;
                    std::thread::sleep(Duration::from_millis(50));
                    Err(SharedError::Away)
                });
                assert!(matches!(failed, Err(SharedError::Away)));
            });
            begins.recv().unwrap();
            let held = get(&cache, &path, b"1234").unwrap();
            assert_eq!(fs::read(held.path()).unwrap(), b"1234");
        });
        fs::write(&path, "12").unwrap();
        let held = get(&cache, &path, b"1234").unwrap();
        assert_eq!(fs::read(held.path()).unwrap(), b"1234", "a copy of another length is replaced");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
