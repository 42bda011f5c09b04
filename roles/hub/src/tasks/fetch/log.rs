//! The log of reports, in which each topic stays until it is fetched.

use super::{ChangeReporter, Fetcher, MAX_WAITING, Waiting};
use abreast_core::{LogError, Offset, Payload};
use std::sync::Arc;

impl Fetcher {
    /// Adds a report that this node recorded, unless another node fetches topics. A topic that waits
    /// already is not fetched twice.
    pub(crate) fn add(&self, url: &str, offset: Offset, reporter: ChangeReporter) {
        if self.engine.held.is_shared() {
            let mut waiting = self.lock();
            // Earlier reports of other nodes may not be read yet, so `last` stays.
            if !self.engine.held.is_first()
                || offset <= waiting.read
                || !waiting.added.insert(offset)
            {
                return;
            }
        } else {
            let mut waiting = self.lock();
            waiting.last = waiting.last.max(offset);
        }
        self.put(url, offset, reporter);
    }

    /// Adds the reports that any node recorded since the last call. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn read_log(&self) -> Result<(), LogError> {
        loop {
            let after = self.lock().read;
            let page = self.engine.store.read(self.topic, after, 1_000)?;
            let Some(last) = page.last() else { return Ok(()) };
            let last = last.offset;
            for found in page {
                if let Payload::Bytes(url) = &found.content.payload
                    && let Ok(url) = std::str::from_utf8(url)
                    && !self.lock().added.contains(&found.offset)
                {
                    self.put(url, found.offset, ChangeReporter::Forgotten);
                }
            }
            let mut waiting = self.lock();
            waiting.read = last;
            waiting.last = waiting.last.max(last);
            waiting.added = waiting.added.split_off(&Offset(last.0 + 1));
        }
    }

    /// Forgets all reports, because another node fetches the topics now.
    pub(crate) fn release(&self) {
        let mut waiting = self.lock();
        let new = Waiting::new();
        let Waiting { lanes, next_number, .. } = std::mem::replace(&mut *waiting, new);
        // Running exchanges end in their lanes. Numbers are not used again.
        (waiting.lanes, waiting.next_number) = (lanes, next_number);
    }

    /// Starts fetches that wait for a renewal of the node's lease.
    pub(crate) fn start_waiting(&self) {
        self.wake.notify_one();
    }

    /// Whether the log has room for the report of a topic that another node fetches. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn log_has_room(&self) -> Result<bool, LogError> {
        let log = self.engine.store.topic(self.topic)?;
        let reports = log.map_or(0, |log| log.head.0 - log.trimmed.0);
        Ok(reports < 2 * MAX_WAITING as u64)
    }

    /// Drops fetched topics from the log.
    pub(super) async fn trim(&self) {
        let up_to = {
            let mut waiting = self.lock();
            let first = waiting.topics.values().map(|spoken| spoken.last.0).min();
            let up_to = first.map_or(waiting.last, |first| waiting.last.min(Offset(first - 1)));
            // Trim in steps of a hundred.
            if up_to.0 < waiting.trimmed.0 + 100 && !waiting.topics.is_empty()
                || up_to <= waiting.trimmed
            {
                return;
            }
            waiting.trimmed = up_to;
            up_to
        };
        let (store, topic) = (Arc::clone(&self.engine.store), self.topic);
        let _ = tokio::task::spawn_blocking(move || store.trim(topic, up_to)).await;
    }
}
