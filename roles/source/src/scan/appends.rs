//! Several appends on their way at once, a limited number of them.

use abreast_contents::PinnedContent;
use abreast_core::{Change, ChangeLog, LogError, SetId};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Appends not yet durable.
const OUTSTANDING: usize = 8;

/// Appends that are not durable yet, and the first failure.
#[derive(Default)]
struct Outstanding {
    count: usize,
    recorded: u64,
    unchanged: u64,
    failure: Option<LogError>,
}

/// What was appended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AppendCounts {
    /// Changes recorded.
    pub(crate) recorded: u64,
    /// Changes that were no change.
    pub(crate) unchanged: u64,
}

/// Appends that are under way.
#[derive(Clone, Default)]
pub(crate) struct Appends(Arc<(Mutex<Outstanding>, Condvar)>);

impl Appends {
    /// Waits until one more append may be on its way; false when an earlier one has failed.
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

    /// Queues one append, for which a place was taken; what is kept for it is held until it is
    /// durable.
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
    /// One failed.
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
