//! Who recorded a resource last, if two do? What the API wrote is not overtaken by an older look at the folder.
//!
//! A look at a file takes a moment: meanwhile the API may replace the file and record that. Whoever looks notes the
//! count of writes before, and records only what was not written since; the rest is looked at again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keys remembered one by one; when there are more, all looks under way are repeated.
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
}

impl Writes {
    /// Writes so far. To be asked before looking at a file.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Held while something is handed to the log, so that what is handed over is in order.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Was this key written after that many writes?
    pub(crate) fn is_after(&self, key: &str, count: u64) -> bool {
        self.by_key.get(key).copied().unwrap_or(self.floor) > count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_after_a_look_is_known_also_when_keys_were_forgotten() {
        let writes = Writes::default();
        let before = writes.count();
        let mut last = writes.lock();
        writes.note(&mut last, "a");
        assert!(last.is_after("a", before) && !last.is_after("b", before) && !last.is_after("a", writes.count()));
        for number in 0..MAX_KEYS {
            writes.note(&mut last, &number.to_string());
        }
        assert!(last.is_after("a", before) && last.by_key.len() <= MAX_KEYS);
    }
}
