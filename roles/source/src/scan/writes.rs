//! Order of concurrent writes to a resource, so that an older state of the folder does not
//! overwrite a write of the API in the log.
//!
//! While the watch reads a file, the API can replace the file and record the change. The watch
//! therefore gets the count of writes before it reads, and only records files that were not written
//! since and are not being written. The other files are read again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most keys in memory. With more, all files that are currently being read are read again.
const MAX_KEYS: usize = 10_000;

/// Count of the changes that are not recorded by the watch.
#[derive(Debug, Default)]
pub struct Writes {
    count: AtomicU64,
    last: Mutex<Last>,
}

/// Count at the last write of each key.
#[derive(Debug, Default)]
pub(crate) struct Last {
    by_key: HashMap<String, u64>,
    /// Highest count of the keys that are not in memory any more.
    floor: u64,
    /// Keys whose files are currently being replaced, with the number of writers.
    busy: HashMap<String, usize>,
}

/// Marks a key as being written, until dropped.
#[derive(Debug)]
pub(crate) struct Busy<'w> {
    writes: &'w Writes,
    key: String,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut last = self.writes.lock();
        if let Some(count) = last.busy.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                last.busy.remove(&self.key);
            }
        }
    }
}

impl Writes {
    /// Returns the number of writes. Call this method before a file is read.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Locks the order of changes. Hold the lock while changes are passed to the log.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a key before its file is replaced. Drop the result after the change was recorded.
    pub(crate) fn begin(&self, key: String) -> Busy<'_> {
        *self.lock().busy.entry(key.clone()).or_default() += 1;
        Busy { writes: self, key }
    }

    /// Counts a write. The caller holds the lock until the change is passed to the log.
    pub(crate) fn note(&self, last: &mut Last, key: &str) {
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if last.by_key.len() >= MAX_KEYS {
            last.by_key.clear();
            last.floor = count;
        }
        last.by_key.insert(key.to_owned(), count);
    }
}

impl Last {
    /// Whether this key was written after the count, or is being written.
    pub(crate) fn is_after(&self, key: &str, count: u64) -> bool {
        self.busy.contains_key(key) || self.by_key.get(key).copied().unwrap_or(self.floor) > count
    }

    /// Whether any key is currently being written.
    pub(crate) fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_after_a_reading_are_known_when_keys_were_forgotten() {
        let writes = Writes::default();
        let before = writes.count();
        let mut last = writes.lock();
        writes.note(&mut last, "a");
        assert!(
            last.is_after("a", before)
                && !last.is_after("b", before)
                && !last.is_after("a", writes.count())
        );
        for number in 0..MAX_KEYS {
            writes.note(&mut last, &number.to_string());
        }
        assert!(last.is_after("a", before) && last.by_key.len() <= MAX_KEYS);
    }

    #[test]
    fn a_key_is_not_recorded_by_others_while_it_is_written() {
        let writes = Writes::default();
        let (one, two) = (writes.begin("a".into()), writes.begin("a".into()));
        drop(one);
        assert!(
            writes.lock().is_busy()
                && writes.lock().is_after("a", 0)
                && !writes.lock().is_after("b", 0)
        );
        drop(two);
        assert!(!writes.lock().is_busy() && !writes.lock().is_after("a", 0));
    }
}
