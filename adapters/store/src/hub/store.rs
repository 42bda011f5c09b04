//! The hub's store: its guarantees and its operations.

use super::limits::no_topic;
use super::recorder::{HubRecorder, Job, TopicHeads};
use super::summary::{HubSummary, summarise};
use super::transaction::{Answer, HubTransaction};
use super::{
    Attempt, DeadLetter, EndedTarget, Ending, NewTarget, NewVerification, Progress, Settled,
    Target, TargetId, TargetKind, Topic, Verification, VerificationId, targets, topics,
    verifications,
};
use crate::database::locked::DatabaseLock;
use crate::database::open::OpenDatabase;
use crate::hub::Done;
use abreast_core::{
    Clock, ErrorKind, LogError, NewNotification, Notification, Offset, Payload, PublishDone,
    TopicId, TopicLog,
};
use abreast_webtypes::Timestamp;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

pub(crate) const MIGRATIONS: &[&str] = &[include_str!("../migrations/hub_0001.sql")];

/// Estimated bytes that a request occupies in memory and writes, without bodies.
const ROW_BYTES: usize = 512;
/// Estimated bytes that the progress of a target occupies and writes.
const PROGRESS_BYTES: usize = 128;

/// Numbers of rows and bytes in a hub's store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the database's file.
    pub file_bytes: u64,
    /// Bytes of the file that are free for new rows.
    pub free_bytes: u64,
    /// Bytes of the write-ahead log's file.
    pub log_bytes: u64,
    /// Bytes in the bodies of notifications.
    pub body_bytes: u64,
    /// Number of topics in the store.
    pub topics: u64,
    /// Notifications that are not trimmed yet.
    pub notifications: u64,
    /// Number of targets of all topics.
    pub targets: u64,
    /// Verifications that are not settled.
    pub verifications: u64,
    /// Dead letters; merged ranges count once.
    pub dead_letters: u64,
}

/// A hub's topics, targets and verifications in one SQLite file.
///
/// One thread writes: all waiting jobs are committed as one transaction, and each caller gets its
/// reply after the commit reached the disk (write-ahead log, `synchronous=FULL`). Reads use
/// connections of their own and see committed data only. A second process is refused. All calls
/// block; functions with the suffix `_then` block only while too many requests wait, as
/// [`TopicLog::publish_then`] does.
///
/// [`TopicLog::head`] reads memory, not the disk.
///
/// [`TopicLog::read`] stops after bodies of 16 MiB, and returns at least one notification: call it
/// again with the last offset.
pub struct HubStore {
    path: PathBuf,
    database: OpenDatabase<Job>,
    heads: Arc<TopicHeads>,
}

impl fmt::Debug for HubStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl HubStore {
    /// Whether opening this file would change it: it has an older schema, or the form that it has
    /// in a backup. Read-only.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_changed_by_opening(path: &Path) -> Result<bool, LogError> {
        crate::database::migration::is_changed_by_opening(path, MIGRATIONS)
    }

    /// Opens a store; creates the file if it does not exist.
    ///
    /// # Errors
    /// When another process has it open, the disk fails, or it was written by a newer version.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, LogError> {
        let lock = DatabaseLock::take(path)?;
        create_private(path)?;
        let connection = lock.open(MIGRATIONS)?;
        let heads = Arc::new(TopicHeads::default());
        let recorder = HubRecorder::new(clock, Arc::clone(&heads));
        let database = OpenDatabase::start(path, lock, connection, recorder)?;
        Ok(Self { path: path.to_owned(), database, heads })
    }

    /// Checks that later changes will still be on the disk after this process ends.
    ///
    /// # Errors
    /// When the store was removed or replaced while it is open.
    pub fn check_available(&self) -> Result<(), LogError> {
        self.database.presence.check()
    }

    /// Records the waiting requests, then ends the writer. Later changes are refused, reads
    /// continue.
    pub fn close(&self) {
        self.database.close();
    }

    fn ask<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&mut HubTransaction<'_>) -> Answer<T> + Send + 'static,
        done: Done<T>,
    ) {
        self.database.queue.push(Job::new(bytes, work, done));
    }

    fn call<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&mut HubTransaction<'_>) -> Answer<T> + Send + 'static,
    ) -> Result<T, LogError> {
        self.database
            .call(|sender| Job::new(bytes, work, Box::new(move |result| drop(sender.send(result)))))
    }

    /// The topic with this URL, if the store has one; does not create a topic.
    ///
    /// # Errors
    /// When the store fails.
    pub fn find_topic(&self, url: &str) -> Result<Option<TopicId>, LogError> {
        self.database
            .readers
            .with("cannot find a topic", |connection| topics::find(connection, url))
    }

    /// The topic with this number.
    ///
    /// # Errors
    /// When the store fails.
    pub fn topic(&self, id: TopicId) -> Result<Option<Topic>, LogError> {
        self.database.readers.with("cannot read a topic", |connection| topics::one(connection, id))
    }

    /// Topics with larger numbers than `after`, in order, at most `limit`. Pass 0 for the first
    /// page.
    ///
    /// # Errors
    /// When the store fails.
    pub fn topics(&self, after: TopicId, limit: usize) -> Result<Vec<Topic>, LogError> {
        self.database
            .readers
            .with("cannot read the topics", |connection| topics::page(connection, after, limit))
    }

    /// The last notification that was accepted before an instant, 0 if all are newer. Trimming up
    /// to this offset removes all older notifications.
    ///
    /// # Errors
    /// When the topic does not exist or the store fails.
    pub fn accepted_before(&self, topic: TopicId, time: Timestamp) -> Result<Offset, LogError> {
        self.database
            .readers
            .with("cannot read a topic", |connection| topics::before(connection, topic, time))?
            .ok_or_else(|| no_topic(topic))
    }

    /// Creates a target. If the topic already has a target with this address and kind, its secret
    /// and lease are replaced, and its cursor does not change.
    ///
    /// # Errors
    /// When the topic does not exist, something is too long, or the store fails.
    pub fn put_target(&self, new: NewTarget) -> Result<Target, LogError> {
        self.call(ROW_BYTES, move |run| targets::put(run, &new))
    }

    /// As [`HubStore::put_target`]; the result is passed to `done`.
    pub fn put_target_then(&self, new: NewTarget, done: Done<Target>) {
        self.ask(ROW_BYTES, move |run| targets::put(run, &new), done);
    }

    /// Ends a target. `false` if it does not exist.
    ///
    /// # Errors
    /// When the store fails.
    pub fn end_target(&self, id: TargetId, why: Ending) -> Result<bool, LogError> {
        self.call(ROW_BYTES, move |run| targets::end(run, id, why).map(Ok))
    }

    /// As [`HubStore::end_target`]; the result is passed to `done`.
    pub fn end_target_then(&self, id: TargetId, why: Ending, done: Done<bool>) {
        self.ask(ROW_BYTES, move |run| targets::end(run, id, why).map(Ok), done);
    }

    /// Records the progress of targets in one transaction. Returns the targets whose progress was
    /// not recorded: they ended, were renewed or replayed meanwhile (another generation), or have a
    /// larger cursor.
    ///
    /// # Errors
    /// When the store fails; then no progress is recorded.
    pub fn save_progress(&self, progress: Vec<Progress>) -> Result<Vec<TargetId>, LogError> {
        self.call(progress.len() * PROGRESS_BYTES, move |run| {
            targets::save_progress(run, &progress)
        })
    }

    /// As [`HubStore::save_progress`]; the result is passed to `done`.
    pub fn save_progress_then(&self, progress: Vec<Progress>, done: Done<Vec<TargetId>>) {
        self.ask(
            progress.len() * PROGRESS_BYTES,
            move |run| targets::save_progress(run, &progress),
            done,
        );
    }

    /// Sets a target's cursor, usually back: later notifications are delivered again. A number
    /// above the topic's last notification is replaced by the last. `None` if the target does not
    /// exist.
    ///
    /// # Errors
    /// When the store fails.
    pub fn replay(&self, id: TargetId, to: Offset) -> Result<Option<Target>, LogError> {
        self.call(ROW_BYTES, move |run| targets::replay(run, id, to).map(Ok))
    }

    /// The target with this number.
    ///
    /// # Errors
    /// When the store fails.
    pub fn target(&self, id: TargetId) -> Result<Option<Target>, LogError> {
        self.database
            .readers
            .with("cannot read a target", |connection| targets::one(connection, id))
    }

    /// The target with this topic, address and kind.
    ///
    /// # Errors
    /// When the store fails.
    pub fn find_target(
        &self,
        topic: TopicId,
        address: &str,
        kind: TargetKind,
    ) -> Result<Option<Target>, LogError> {
        self.database.readers.with("cannot find a target", |connection| {
            targets::find(connection, topic, address, kind)
        })
    }

    /// Targets of a topic with larger numbers than `after`, in order, at most `limit`. Pass 0 for
    /// the first page.
    ///
    /// # Errors
    /// When the store fails.
    pub fn targets_of(
        &self,
        topic: TopicId,
        after: TargetId,
        limit: usize,
    ) -> Result<Vec<Target>, LogError> {
        self.database.readers.with("cannot read the targets", |connection| {
            targets::page_of(connection, topic, after, limit)
        })
    }

    /// Targets of all topics with larger numbers than `after`, in order, at most `limit`. Pass 0
    /// for the first page.
    ///
    /// # Errors
    /// When the store fails.
    pub fn all_targets(&self, after: TargetId, limit: usize) -> Result<Vec<Target>, LogError> {
        self.database
            .readers
            .with("cannot read the targets", |connection| targets::page(connection, after, limit))
    }

    /// Targets whose lease is over, in the order of the ends of their leases.
    ///
    /// # Errors
    /// When the store fails.
    pub fn leases_over(&self, now: Timestamp, limit: usize) -> Result<Vec<TargetId>, LogError> {
        self.database.readers.with("cannot read the leases", |connection| {
            targets::leases_over(connection, now, limit)
        })
    }

    /// The last eight failures of a target and its last success, the newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub fn attempts(&self, id: TargetId) -> Result<Vec<Attempt>, LogError> {
        self.database
            .readers
            .with("cannot read attempts", |connection| targets::attempts(connection, id))
    }

    /// Dead letters of a target whose first offset is larger than `after`, in order, at most
    /// `limit`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn dead_letters(
        &self,
        id: TargetId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, LogError> {
        self.database.readers.with("cannot read dead letters", |connection| {
            targets::dead(connection, id, after, limit)
        })
    }

    /// Ended targets with smaller numbers than `before`, the newest first, at most `limit`. Pass
    /// `i64::MAX` for the first page.
    ///
    /// # Errors
    /// When the store fails.
    pub fn ended_targets(&self, before: i64, limit: usize) -> Result<Vec<EndedTarget>, LogError> {
        self.database.readers.with("cannot read ended targets", |connection| {
            targets::ended(connection, before, limit)
        })
    }

    /// Records a request to be verified; `done` is called when it is durable. [`ErrorKind::Busy`]
    /// if 100,000 requests are waiting.
    pub fn put_verification_then(&self, new: NewVerification, done: Done<VerificationId>) {
        self.ask(ROW_BYTES, move |run| verifications::put(run, &new), done);
    }

    /// A verification that is not settled.
    ///
    /// # Errors
    /// When the store fails.
    pub fn verification(&self, id: VerificationId) -> Result<Option<Verification>, LogError> {
        self.database
            .readers
            .with("cannot read a verification", |connection| verifications::one(connection, id))
    }

    /// Verifications with larger numbers than `after`, in order, at most `limit`. Pass 0 for the
    /// first page.
    ///
    /// # Errors
    /// When the store fails.
    pub fn verifications(
        &self,
        after: VerificationId,
        limit: usize,
    ) -> Result<Vec<Verification>, LogError> {
        self.database.readers.with("cannot read the verifications", |connection| {
            verifications::page(connection, after, limit)
        })
    }

    /// Records a failed attempt, and the time of the next one.
    pub fn retry_verification_then(
        &self,
        id: VerificationId,
        attempts: u32,
        next_at: Timestamp,
        done: Done<()>,
    ) {
        self.ask(
            ROW_BYTES,
            move |run| verifications::retry(run.connection, id, attempts, next_at).map(Ok),
            done,
        );
    }

    /// Settles a verification, and creates, renews or ends its target in the same transaction.
    /// Returns `None`, and changes nothing, if the target does not exist or the verification was
    /// settled earlier.
    ///
    /// # Errors
    /// When the topic does not exist or the store fails.
    pub fn finish_verification(
        &self,
        id: VerificationId,
        settled: Settled,
    ) -> Result<Option<Target>, LogError> {
        self.call(ROW_BYTES, move |run| verifications::finish(run, id, &settled))
    }

    /// As [`HubStore::finish_verification`]; the result is passed to `done`.
    pub fn finish_verification_then(
        &self,
        id: VerificationId,
        settled: Settled,
        done: Done<Option<Target>>,
    ) {
        self.ask(ROW_BYTES, move |run| verifications::finish(run, id, &settled), done);
    }

    /// Describes the deliveries, and counts the subscriptions that ended since a time.
    ///
    /// # Errors
    /// When the store fails.
    pub fn summary(&self, since: Timestamp) -> Result<HubSummary, LogError> {
        self.database.readers.with("cannot read the state of the deliveries", |connection| {
            summarise(connection, since)
        })
    }

    /// Counts the store's rows and bytes.
    ///
    /// # Errors
    /// When the store fails.
    pub fn sizes(&self) -> Result<Sizes, LogError> {
        let log = std::fs::metadata(crate::database::connection::beside(&self.path, "-wal"))
            .map_or(0, |found| found.len());
        self.database.readers.with("cannot read the store's sizes", |connection| {
            let pragma =
                |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            let count = |sql: &str| {
                connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))
            };
            let page = pragma("page_size")?;
            Ok(Sizes {
                file_bytes: (pragma("page_count")? * page) as u64,
                free_bytes: (pragma("freelist_count")? * page) as u64,
                log_bytes: log,
                body_bytes: count("SELECT ifnull(sum(bytes), 0) FROM topics")? as u64,
                topics: count("SELECT count(*) FROM topics")? as u64,
                notifications: count("SELECT ifnull(sum(head - trimmed), 0) FROM topics")? as u64,
                targets: targets::count(connection)?,
                verifications: verifications::count(connection)? as u64,
                dead_letters: count("SELECT count(*) FROM dead")? as u64,
            })
        })
    }
}

impl TopicLog for HubStore {
    fn open_topic(&self, url: &str) -> Result<TopicId, LogError> {
        if let Some(known) = self.find_topic(url)? {
            return Ok(known);
        }
        let url = url.to_owned();
        self.call(ROW_BYTES, move |run| topics::open(run, &url))
    }

    fn publish_then(&self, topic: TopicId, notification: NewNotification, done: PublishDone) {
        let bytes = match &notification.payload {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Changes { .. } => 0,
        };
        self.ask(ROW_BYTES + bytes, move |run| topics::publish(run, topic, &notification), done);
    }

    fn head(&self, topic: TopicId) -> Result<Offset, LogError> {
        let heads = self.heads.read().unwrap_or_else(PoisonError::into_inner);
        heads.get(&topic).copied().ok_or_else(|| no_topic(topic))
    }

    fn read(
        &self,
        topic: TopicId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<Notification>, LogError> {
        self.head(topic)?;
        self.database.readers.with("cannot read notifications", |connection| {
            topics::read(connection, topic, after, limit)
        })
    }

    /// One transaction drops at most a thousand notifications, so that other requests do not wait
    /// long.
    fn trim(&self, topic: TopicId, up_to: Offset) -> Result<(), LogError> {
        while self.call(ROW_BYTES, move |run| topics::trim(run, topic, up_to))? {}
        Ok(())
    }
}

/// Creates the file if it does not exist, readable for its owner only, because it contains secrets.
pub(crate) fn create_private(path: &Path) -> Result<(), LogError> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(|cause| {
        let message = format!(
            "cannot open the store {}\n  help: its folder must be there and writable",
            path.display()
        );
        LogError::new(ErrorKind::Io, message).with_cause(cause)
    })
}
