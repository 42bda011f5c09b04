//! Administration: queries and manual actions. All calls block.

use crate::hub::Hub;
use crate::subscribe;
use abreast_core::{LogError, Offset, TopicId};
use abreast_store::hub::{
    Attempt, DeadLetter, EndedTarget, Ending, Sizes, Target, TargetId, TargetKind, Topic,
    VerificationMode,
};
use std::sync::mpsc::sync_channel;

impl Hub {
    /// Topics by number, those after one; begin with 0. The hub's own log of what is to be fetched
    /// is not among them.
    ///
    /// # Errors
    /// When the store fails.
    pub fn topics(&self, after: TopicId, limit: usize) -> Result<Vec<Topic>, LogError> {
        let mut topics = self.store().topics(after, limit)?;
        topics.retain(|topic| topic.id != self.inner().fetcher.topic);
        Ok(topics)
    }

    /// The topic of that URL, if it is known. From memory.
    pub fn topic(&self, url: &str) -> Option<TopicId> {
        self.inner().known(url)
    }

    /// Targets by number, those after one, of one topic or of all; begin with 0. Their cursors and
    /// failures are of this instant, all else is as it was recorded last.
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

    /// One target.
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

    /// Dead letters of a target, by offset, those after one.
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

    /// Targets that ended, the newest first, those before a number; begin with `i64::MAX`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn ended(&self, before: i64, limit: usize) -> Result<Vec<EndedTarget>, LogError> {
        self.store().ended_targets(before, limit)
    }

    /// Sets a target's cursor: what comes after is delivered again, as far as it is kept, and at
    /// once. `None` when there is no such target.
    ///
    /// # Errors
    /// When the store fails.
    pub fn replay(&self, id: TargetId, to: Offset) -> Result<Option<Target>, LogError> {
        let target = self.store().replay(id, to)?;
        if let Some(target) = &target {
            self.inner().engine.moved(target);
        }
        Ok(target)
    }

    /// Ends a target. The subscriber receives a denial [websub §5.2]. `false` when there is no such
    /// target.
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

    /// How much is kept.
    ///
    /// # Errors
    /// When the store fails.
    pub fn sizes(&self) -> Result<Sizes, LogError> {
        self.store().sizes()
    }
}
