//! Records in memory, which a test lets fail.

use crate::{ErrorKind, LogError, Record, Records};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Small records in memory, which several nodes of a test share.
#[derive(Debug, Default)]
pub struct MemoryRecords {
    records: Mutex<BTreeMap<String, Record>>,
    is_failing: AtomicBool,
}

impl MemoryRecords {
    /// Lets all calls fail from now on, as if the store were out of reach, or succeed again.
    pub fn fail(&self, is_failing: bool) {
        self.is_failing.store(is_failing, Ordering::SeqCst);
    }

    fn lock(&self) -> Result<MutexGuard<'_, BTreeMap<String, Record>>, LogError> {
        if self.is_failing.load(Ordering::SeqCst) {
            return Err(LogError::new(ErrorKind::Unavailable, "the store is out of reach"));
        }
        Ok(self.records.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Records for MemoryRecords {
    fn record(&self, name: &str) -> Result<Option<Record>, LogError> {
        Ok(self.lock()?.get(name).cloned())
    }

    fn record_revision(&self, name: &str) -> Result<u64, LogError> {
        Ok(self.lock()?.get(name).map_or(0, |record| record.revision))
    }

    fn replace_record(&self, name: &str, revision: u64, bytes: &[u8]) -> Result<bool, LogError> {
        let mut records = self.lock()?;
        let known = records.get(name).map_or(0, |record| record.revision);
        if known == revision {
            let record = Record { revision: revision + 1, bytes: bytes.to_vec() };
            records.insert(name.to_owned(), record);
        }
        Ok(known == revision)
    }
}
