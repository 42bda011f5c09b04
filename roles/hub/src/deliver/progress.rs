//! Records the progress of deliveries in the store.

use super::{Engine, State};
use abreast_core::LogError;
use abreast_core::hub::{Progress, TargetId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time to wait for running deliveries when the hub stops.
const FAREWELL: Duration = Duration::from_secs(2);
/// Pause before progress is recorded again that the store did not record.
const PAUSE: Duration = Duration::from_secs(1);
/// How long several nodes deliver while the store does not record progress: another node that takes
/// over repeats these deliveries.
const UNSAVED_MAX: Duration = Duration::from_millis(500);

/// Advice while progress cannot be recorded.
const HELP: &str = "check the store; after a restart, deliveries since then are repeated";

impl Engine {
    /// Passes progress to the store, if it is due.
    pub(super) fn save(self: &Arc<Self>, now: Instant) {
        let progress = {
            let mut state = self.lock();
            if !state.saving && !state.table.has_progress() {
                // A lost shard takes its progress with it.
                state.unsaved_since = None;
            }
            if state.saving || state.save_at.is_none_or(|at| at > now) {
                return;
            }
            state.save_at = None;
            let progress = state.table.take_progress();
            state.saving = !progress.is_empty();
            if state.saving {
                state.unsaved_since.get_or_insert(now);
            }
            progress
        };
        if progress.is_empty() {
            return;
        }
        let ids: Vec<TargetId> = progress.iter().map(|progress| progress.id).collect();
        let letters: Vec<Progress> =
            progress.iter().filter(|progress| progress.dead.is_some()).cloned().collect();
        let engine = Arc::clone(self);
        self.store.save_progress_then(
            progress,
            Box::new(move |result| {
                let mut state = engine.lock();
                state.saving = false;
                state.unsaved.log("records of the progress of deliveries", HELP, &result);
                if result.is_ok() {
                    state.unsaved_since = None;
                }
                match result {
                    Ok(refused) if engine.held.is_shared() => {
                        if state.table.record_again(&refused, letters) {
                            state.save_at = Some(Instant::now() + PAUSE);
                        }
                    }
                    Ok(_) => {}
                    Err(_) => {
                        state.table.put_back(&ids, letters);
                        state.save_at = Some(Instant::now() + PAUSE);
                    }
                }
                drop(state);
                engine.wake.notify_one();
            }),
        );
    }

    /// Whether too much would be repeated if another node took over now.
    pub(super) fn waits_for_store(&self, state: &State, now: Instant) -> bool {
        let is_unsaved = state.saving || state.table.has_progress();
        let since = state.unsaved_since.filter(|_| is_unsaved && self.held.is_shared());
        since.is_some_and(|since| now.saturating_duration_since(since) > UNSAVED_MAX)
    }

    /// Records all progress. Blocks.
    ///
    /// # Errors
    /// When the store fails; the progress can be recorded later.
    pub(crate) fn record_progress(&self) -> Result<(), LogError> {
        let progress = self.lock().table.take_progress();
        if progress.is_empty() {
            return Ok(());
        }
        let ids: Vec<TargetId> = progress.iter().map(|progress| progress.id).collect();
        let letters: Vec<Progress> =
            progress.iter().filter(|progress| progress.dead.is_some()).cloned().collect();
        match self.store.save_progress(progress) {
            Ok(refused) => {
                if self.held.is_shared() {
                    self.lock().table.record_again(&refused, letters);
                }
                Ok(())
            }
            Err(error) => {
                self.lock().table.put_back(&ids, letters);
                Err(error)
            }
        }
    }

    /// Waits for running deliveries for a short time, and records all cursors.
    pub(super) async fn farewell(self: &Arc<Self>) {
        let end = Instant::now() + FAREWELL;
        while self.lock().lanes.load().flying > 0 && Instant::now() < end {
            let _ = tokio::time::timeout(Duration::from_millis(20), self.wake.notified()).await;
        }
        self.part();
        let engine = Arc::clone(self);
        let saved = tokio::task::spawn_blocking(move || engine.record_progress()).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!(%error, "the last progress of deliveries was not recorded; they are repeated");
        }
    }
}
