//! The trait of a hub's store.

use super::done::Done;
use super::nodes::HubNodes;
use super::summary::{HubSummary, Sizes};
use super::target::{
    Attempt, DeadLetter, EndedTarget, Ending, NewTarget, Progress, Target, TargetId, TargetKind,
};
use super::topic::Topic;
use super::verification::{NewVerification, Settled, Verification, VerificationId};
use crate::log::wait;
use crate::{Clock, LogError, Offset, SystemClock, TopicId, TopicLog};
use abreast_webtypes::Timestamp;
use std::sync::Arc;

/// A hub's topics, targets and verifications.
///
/// Every call may read the store, and so block: no answer is promised from memory, and async callers
/// move all calls to a blocking thread. Functions with the suffix `_then` block only while too many
/// requests wait, as [`TopicLog::publish_then`] does.
///
/// What implementations promise:
/// - a change is durable, and visible to later reads, when its function returns or `done` is called
///   with success;
/// - a change is recorded whole or not at all: after an error that `done` gets, nothing is recorded,
///   or the store ended and the result is unknown;
/// - `done` is called once, from any thread, also while the store ends;
/// - changes that are requested through one value are recorded in the order of the calls;
/// - numbers of targets and verifications are never used again, also after restarts;
/// - a read returns committed data only. Two reads need not see the same state, since other changes
///   may be recorded between them.
///
/// Values over the limits ([`URL_BYTES_MAX`](super::URL_BYTES_MAX) and others) are refused with
/// [`ErrorKind::Refused`](crate::ErrorKind::Refused), and a topic that the store does not contain with
/// [`ErrorKind::NoSet`](crate::ErrorKind::NoSet). Changes that wait too long for room get
/// [`ErrorKind::Busy`](crate::ErrorKind::Busy).
pub trait HubStore: TopicLog {
    /// The nodes that share this store; `None` if only this process delivers from it.
    fn nodes(&self) -> Option<&dyn HubNodes> {
        None
    }

    /// The clock for the times in this store: the same for all nodes, also if the clocks of their
    /// machines differ.
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// Checks that later changes will outlive this process, for probes.
    ///
    /// # Errors
    /// When the store was removed or replaced while it is open, or cannot be reached.
    fn check_available(&self) -> Result<(), LogError>;

    /// The topic with this URL, if the store has one; does not create a topic.
    ///
    /// # Errors
    /// When the store fails.
    fn find_topic(&self, url: &str) -> Result<Option<TopicId>, LogError>;

    /// The topic with this number.
    ///
    /// # Errors
    /// When the store fails.
    fn topic(&self, id: TopicId) -> Result<Option<Topic>, LogError>;

    /// Topics with larger numbers than `after`, in order, at most `limit`. Pass 0 for the first
    /// page.
    ///
    /// # Errors
    /// When the store fails.
    fn topics(&self, after: TopicId, limit: usize) -> Result<Vec<Topic>, LogError>;

    /// The last notification that was accepted before an instant, 0 if all are newer. Trimming up
    /// to this offset removes all older notifications.
    ///
    /// # Errors
    /// When the topic does not exist or the store fails.
    fn accepted_before(&self, topic: TopicId, time: Timestamp) -> Result<Offset, LogError>;

    /// Creates a target. If the topic already has a target with this address and kind, its secret
    /// and lease are replaced, its generation is incremented, and its cursor does not change.
    ///
    /// # Errors
    /// When the topic does not exist, something is too long, or the store fails.
    fn put_target(&self, new: NewTarget) -> Result<Target, LogError> {
        wait(|done| self.put_target_then(new, done))
    }

    /// As [`HubStore::put_target`]; `done` gets the target when it is durable.
    fn put_target_then(&self, new: NewTarget, done: Done<Target>);

    /// Ends a target: removes its progress, attempts and dead letters, and adds it to the ended
    /// targets. `false` if it does not exist.
    ///
    /// # Errors
    /// When the store fails.
    fn end_target(&self, id: TargetId, why: Ending) -> Result<bool, LogError> {
        wait(|done| self.end_target_then(id, why, done))
    }

    /// As [`HubStore::end_target`]; `done` is called when the end is durable.
    fn end_target_then(&self, id: TargetId, why: Ending, done: Done<bool>);

    /// Records the progress of targets in one transaction. Returns the targets whose progress was
    /// not recorded: they ended, were renewed or replayed meanwhile (another generation), or have a
    /// larger cursor.
    ///
    /// # Errors
    /// When the store fails; then no progress is recorded.
    fn save_progress(&self, progress: Vec<Progress>) -> Result<Vec<TargetId>, LogError> {
        wait(|done| self.save_progress_then(progress, done))
    }

    /// As [`HubStore::save_progress`]; `done` is called when all recorded progress is durable.
    fn save_progress_then(&self, progress: Vec<Progress>, done: Done<Vec<TargetId>>);

    /// Sets a target's cursor, usually back, and increments its generation: later notifications are
    /// delivered again. A number above the topic's last notification is replaced by the last. `None`
    /// if the target does not exist.
    ///
    /// # Errors
    /// When the store fails.
    fn replay(&self, id: TargetId, to: Offset) -> Result<Option<Target>, LogError>;

    /// The target with this number.
    ///
    /// # Errors
    /// When the store fails.
    fn target(&self, id: TargetId) -> Result<Option<Target>, LogError>;

    /// The target with this topic, address and kind.
    ///
    /// # Errors
    /// When the store fails.
    fn find_target(
        &self,
        topic: TopicId,
        address: &str,
        kind: TargetKind,
    ) -> Result<Option<Target>, LogError>;

    /// Targets of a topic with larger numbers than `after`, in order, at most `limit`. Pass 0 for
    /// the first page.
    ///
    /// # Errors
    /// When the store fails.
    fn targets_of(
        &self,
        topic: TopicId,
        after: TargetId,
        limit: usize,
    ) -> Result<Vec<Target>, LogError>;

    /// Targets of all topics with larger numbers than `after`, in order, at most `limit`. Pass 0
    /// for the first page.
    ///
    /// # Errors
    /// When the store fails.
    fn all_targets(&self, after: TargetId, limit: usize) -> Result<Vec<Target>, LogError>;

    /// Targets whose lease is over, in the order of the ends of their leases.
    ///
    /// # Errors
    /// When the store fails.
    fn leases_over(&self, now: Timestamp, limit: usize) -> Result<Vec<TargetId>, LogError>;

    /// The last failures of a target, [`ATTEMPTS_MAX`](super::ATTEMPTS_MAX) at most, and its last
    /// success, the newest first.
    ///
    /// # Errors
    /// When the store fails.
    fn attempts(&self, id: TargetId) -> Result<Vec<Attempt>, LogError>;

    /// Dead letters of a target whose first offset is larger than `after`, in order, at most
    /// `limit`. Over [`DEAD_LETTERS_MAX`](super::DEAD_LETTERS_MAX) of them, the oldest are merged
    /// into ranges.
    ///
    /// # Errors
    /// When the store fails.
    fn dead_letters(
        &self,
        id: TargetId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, LogError>;

    /// Ended targets with smaller numbers than `before`, the newest first, at most `limit`. Pass
    /// `i64::MAX` for the first page.
    ///
    /// # Errors
    /// When the store fails.
    fn ended_targets(&self, before: i64, limit: usize) -> Result<Vec<EndedTarget>, LogError>;

    /// Records a request to be verified; `done` is called when it is durable.
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) if
    /// [`VERIFICATIONS_MAX`](super::VERIFICATIONS_MAX) requests are waiting.
    fn put_verification_then(&self, new: NewVerification, done: Done<VerificationId>);

    /// A verification that is not settled.
    ///
    /// # Errors
    /// When the store fails.
    fn verification(&self, id: VerificationId) -> Result<Option<Verification>, LogError>;

    /// Verifications with larger numbers than `after`, in order, at most `limit`. Pass 0 for the
    /// first page.
    ///
    /// # Errors
    /// When the store fails.
    fn verifications(
        &self,
        after: VerificationId,
        limit: usize,
    ) -> Result<Vec<Verification>, LogError>;

    /// Records a failed attempt, and the time of the next one. Changes nothing if the verification
    /// was settled.
    fn retry_verification_then(
        &self,
        id: VerificationId,
        attempts: u32,
        next_at: Timestamp,
        done: Done<()>,
    );

    /// Settles a verification, and creates, renews or ends its target in the same transaction.
    /// Returns `None`, and changes nothing, if the verification was settled earlier; `None` also if
    /// no target changed.
    ///
    /// # Errors
    /// When the topic does not exist or the store fails; then the verification is not settled.
    fn finish_verification(
        &self,
        id: VerificationId,
        settled: Settled,
    ) -> Result<Option<Target>, LogError> {
        wait(|done| self.finish_verification_then(id, settled, done))
    }

    /// As [`HubStore::finish_verification`]; `done` is called when verification and target are
    /// durable.
    fn finish_verification_then(
        &self,
        id: VerificationId,
        settled: Settled,
        done: Done<Option<Target>>,
    );

    /// Describes the deliveries, and counts the subscriptions that ended since a time.
    ///
    /// # Errors
    /// When the store fails.
    fn summary(&self, since: Timestamp) -> Result<HubSummary, LogError>;

    /// Counts the store's rows and bytes.
    ///
    /// # Errors
    /// When the store fails.
    fn sizes(&self) -> Result<Sizes, LogError>;
}
