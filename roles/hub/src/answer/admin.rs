//! Administration: queries and manual actions. All calls block.

use crate::answer::subscribe;
use crate::hub::Hub;
use abreast_core::hub::{
    Attempt, DeadLetter, EndedTarget, Ending, Sizes, Target, TargetId, TargetKind, Topic,
    VerificationMode,
};
use abreast_core::{LogError, Offset, TopicId};
use std::sync::mpsc::sync_channel;

impl Hub {
    /// Topics with larger numbers than `after`, in order, at most `limit`. Pass 0 for the first
    /// page. The hub's internal log of topics to be fetched is not included.
    ///
    /// # Errors
    /// When the store fails.
    pub fn topics(&self, after: TopicId, limit: usize) -> Result<Vec<Topic>, LogError> {
        let mut topics = self.store().topics(after, limit)?;
        topics.retain(|topic| topic.id != self.inner().fetcher.topic);
        Ok(topics)
    }

    /// The topic with this URL, if it is known. Reads memory only.
    pub fn topic(&self, url: &str) -> Option<TopicId> {
        self.inner().known(url)
    }

    /// Targets with larger numbers than `after`, for one topic or for all, in order, at most
    /// `limit`. Pass 0 for the first page. Cursors and failures are up to date; other values are
    /// from the last record in the store.
    ///
    /// # Errors
    /// When the store fails.
    pub fn targets(
        &self,
        topic: Option<TopicId>,
        after: TargetId,
        limit: usize,
    ) -> Result<Vec<Target>, LogError> {
        let mut targets = match topic {
            Some(topic) => self.store().targets_of(topic, after, limit)?,
            None => self.store().all_targets(after, limit)?,
        };
        for target in &mut targets {
            self.inner().engine.update(target);
        }
        Ok(targets)
    }

    /// The target with this number.
    ///
    /// # Errors
    /// When the store fails.
    pub fn target(&self, id: TargetId) -> Result<Option<Target>, LogError> {
        Ok(self.targets(None, TargetId(id.0 - 1), 1)?.pop().filter(|target| target.id == id))
    }

    /// The last failures of a target and its last success, the newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub fn attempts(&self, id: TargetId) -> Result<Vec<Attempt>, LogError> {
        self.store().attempts(id)
    }

    /// Dead letters of a target with a larger offset than `after`, in order, at most `limit`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn dead_letters(
        &self,
        id: TargetId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, LogError> {
        self.store().dead_letters(id, after, limit)
    }

    /// Ended targets with smaller numbers than `before`, the newest first, at most `limit`. Pass
    /// `i64::MAX` for the first page.
    ///
    /// # Errors
    /// When the store fails.
    pub fn ended(&self, before: i64, limit: usize) -> Result<Vec<EndedTarget>, LogError> {
        self.store().ended_targets(before, limit)
    }

    /// Sets a target's cursor. Later notifications are delivered again at once, if they are still
    /// stored. `None` if the target does not exist.
    ///
    /// # Errors
    /// When the store fails.
    pub fn replay(&self, id: TargetId, to: Offset) -> Result<Option<Target>, LogError> {
        let target = self.store().replay(id, to)?;
        if let Some(target) = &target {
            self.inner().engine.webhooks.forget(id);
            self.inner().engine.moved(target);
        }
        Ok(target)
    }

    /// Attempts the next delivery to a target at once, if the target waits after a failure. The
    /// failures so far still count, unless another node delivers to the target. `None` if the target
    /// does not exist.
    ///
    /// # Errors
    /// When the store fails.
    pub fn attempt_now(&self, id: TargetId) -> Result<Option<Target>, LogError> {
        let engine = &self.inner().engine;
        engine.attempt_now(id);
        let target = self.target(id)?;
        // The other node attempts the delivery when the cursor is set, even to the same offset.
        let waits = |target: &&Target| target.next_at.is_some() && !engine.held.has_loaded(id);
        match target.as_ref().filter(waits) {
            Some(target) => self.store().replay(id, target.cursor),
            None => Ok(target),
        }
    }

    /// Ends a target. The subscriber receives a denial [websub §5.2]. `false` if the target does
    /// not exist.
    ///
    /// # Errors
    /// When the store fails.
    pub fn end(&self, id: TargetId, reason: Option<&str>) -> Result<bool, LogError> {
        let Some(target) = self.store().target(id)? else { return Ok(false) };
        let ended = self.store().end_target(id, Ending::ByHand)?;
        self.inner().engine.forget(id);
        if ended
            && target.kind == TargetKind::Subscription
            && let Some(url) = self.inner().engine.url(target.topic)
        {
            let mut denied =
                subscribe::new(url.to_string(), target.address, VerificationMode::Denied);
            denied.reason = reason.map(|reason| reason.chars().take(200).collect());
            denied.next_at = self.inner().engine.now();
            let (sender, receiver) = sync_channel(1);
            self.store().put_verification_then(
                denied.clone(),
                Box::new(move |result| drop(sender.send(result))),
            );
            if let Ok(result) = receiver.recv() {
                self.inner().verifier.add(result?, &denied);
            }
        }
        Ok(ended)
    }

    /// Counts the rows and bytes of the hub's store.
    ///
    /// # Errors
    /// When the store fails.
    pub fn sizes(&self) -> Result<Sizes, LogError> {
        self.store().sizes()
    }
}
