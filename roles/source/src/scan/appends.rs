//! Concurrent appends to the log, limited in number.

use abreast_core::contents::PinnedContent;
use abreast_core::{Change, ChangeLog, LogError, SetId};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Most appends that are queued and not yet durable.
const OUTSTANDING: usize = 8;

/// Number of appends that are not yet durable, and the first error.
#[derive(Default)]
struct Outstanding {
    count: usize,
    recorded: u64,
    unchanged: u64,
    failure: Option<LogError>,
}

/// Results of all appends that are durable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AppendCounts {
    /// Changes that were recorded in the log.
    pub(crate) recorded: u64,
    /// Changes that were equal to the state in the log, and were not recorded.
    pub(crate) unchanged: u64,
}

/// Concurrent appends to the log. Clones share the counts.
#[derive(Clone, Default)]
pub(crate) struct Appends(Arc<(Mutex<Outstanding>, Condvar)>);

impl Appends {
    /// Waits until the number of pending appends is below the limit. Returns false if an earlier
    /// append failed.
    pub(crate) fn take_place(&self) -> bool {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.count >= OUTSTANDING {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.failure.is_some() {
            return false;
        }
        state.count += 1;
        true
    }

    /// Queues an append after [`Self::take_place`]. The pinned contents are released when the
    /// append is durable.
    pub(crate) fn append(
        &self,
        log: &dyn ChangeLog,
        set: SetId,
        changes: Vec<Change>,
        kept: Vec<PinnedContent>,
    ) {
        let outstanding = Arc::clone(&self.0);
        log.append_then(
            set,
            changes,
            Box::new(move |result| {
                drop(kept);
                let (state, changed) = &*outstanding;
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                state.count -= 1;
                match result {
                    Ok(appended) => {
                        state.recorded += appended.recorded;
                        state.unchanged += appended.unchanged;
                    }
                    Err(error) => state.failure = state.failure.take().or(Some(error)),
                }
                changed.notify_all();
            }),
        );
    }

    /// Waits until all appends are durable.
    ///
    /// # Errors
    /// The error of the first failed append.
    pub(crate) fn finish(&self) -> Result<AppendCounts, LogError> {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.count > 0 {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match state.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(AppendCounts { recorded: state.recorded, unchanged: state.unchanged }),
        }
    }
}
