//! Creates and checks nodes before the first delivery.

use super::Engine;
use super::outcome::{Outcome, backoff};
use super::pace::NODE_PAUSE_MAX;
use crate::deliver::failing;
use abreast_core::hub::{TargetId, TargetKind};
use std::sync::Arc;

impl Engine {
    /// Creates or checks a node at the start of its delivery, until this succeeds or the target
    /// ends; only once if another node of the hub delivers to the target.
    pub(crate) async fn prepare_node(
        self: Arc<Self>,
        id: TargetId,
        address: String,
        topic_url: String,
    ) {
        let Some(nodes) = &self.nodes else { return };
        let mut failures = 0;
        while !self.is_stopping() && (self.has(id) || self.held.is_shared() && failures == 0) {
            let Err(outcome) = nodes.prepare(&address, &topic_url).await else {
                return self.note_preparation(id, Ok(()));
            };
            let Outcome::Failed { status, error, help, pause, .. } = outcome else { return };
            failures += 1;
            self.note_preparation(id, Err(status));
            if u32::is_power_of_two(failures) {
                let help = help.unwrap_or_else(|| failing::help(TargetKind::Node, status));
                tracing::warn!(hub = address, error, failures, help, "a node is not ready");
            }
            let pause = pause.unwrap_or_else(|| backoff(&self.options.retries, failures));
            tokio::time::sleep(pause.min(NODE_PAUSE_MAX)).await;
        }
    }

    /// Shows that a node is not ready. This alone does not give up notifications; only their own
    /// attempts count.
    fn note_preparation(&self, id: TargetId, prepared: Result<(), Option<u16>>) {
        let mut state = self.lock();
        let Some(place) = state.table.place(id) else { return };
        let Some(entry) = state.table.get_mut(place) else { return };
        match prepared {
            Err(status) => {
                let trouble = entry.trouble.get_or_insert_default();
                trouble.failures = trouble.failures.saturating_add(1);
                trouble.status = status;
            }
            Ok(()) if entry.trouble.as_ref().is_some_and(|trouble| trouble.attempts == 0) => {
                entry.trouble = None;
            }
            Ok(()) => {}
        }
    }
}
