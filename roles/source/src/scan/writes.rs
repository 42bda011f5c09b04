//! The order of two writers of one resource: what the API writes is not overtaken by an older
//! reading of the folder.
//!
//! Reading a file takes a moment: meanwhile the API may replace the file and record that. The watch
//! notes the count of writes before it reads, and records only what was not written since and is
//! not being written; the rest is read again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keys remembered one by one; when there are more, all readings in progress are repeated.
const MAX_KEYS: usize = 10_000;

/// Counts what is recorded by others than the watch.
#[derive(Debug, Default)]
pub struct Writes {
    count: AtomicU64,
    last: Mutex<Last>,
}

/// The count at each key's last write.
#[derive(Debug, Default)]
pub(crate) struct Last {
    by_key: HashMap<String, u64>,
    /// That of all keys forgotten.
    floor: u64,
    /// Keys whose files are being replaced, and by how many.
    busy: HashMap<String, usize>,
}

/// A key is being written until this is dropped.
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
    /// The number of writes so far. To be called before a file is read.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Held while changes are passed to the log, so that they are in order.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a file is about to be replaced, which is recorded before the result is dropped.
    pub(crate) fn begin(&self, key: String) -> Busy<'_> {
        *self.lock().busy.entry(key.clone()).or_default() += 1;
        Busy { writes: self, key }
    }

    /// Notes a write. The lock is held until it is handed to the log.
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
    /// Whether this key was written after that many writes, or is being written.
    pub(crate) fn is_after(&self, key: &str, count: u64) -> bool {
        self.busy.contains_key(key) || self.by_key.get(key).copied().unwrap_or(self.floor) > count
    }

    /// Whether any key is being written.
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
