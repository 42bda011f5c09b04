//! The store of a hub on SQLite.

use super::recorder::{HubRecorder, Job, TopicHeads};
use super::summary::summarise;
use super::transaction::{Answer, HubTransaction};
use super::{targets, topics, verifications};
use crate::database::locked::DatabaseLock;
use crate::database::open::OpenDatabase;
use abreast_core::hub::{
    Attempt, DeadLetter, Done, EndedTarget, Ending, HubStore, HubSummary, NewTarget,
    NewVerification, Progress, Settled, Sizes, Target, TargetId, TargetKind, Topic, Verification,
    VerificationId, no_topic,
};
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
pub struct SqliteHub {
    path: PathBuf,
    database: OpenDatabase<Job>,
    heads: Arc<TopicHeads>,
}

impl fmt::Debug for SqliteHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteHub").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteHub {
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
}

impl HubStore for SqliteHub {
    fn check_available(&self) -> Result<(), LogError> {
        self.database.presence.check()
    }

    fn find_topic(&self, url: &str) -> Result<Option<TopicId>, LogError> {
        self.database
            .readers
            .with("cannot find a topic", |connection| topics::find(connection, url))
    }

    fn topic(&self, id: TopicId) -> Result<Option<Topic>, LogError> {
        self.database.readers.with("cannot read a topic", |connection| topics::one(connection, id))
    }

    fn topics(&self, after: TopicId, limit: usize) -> Result<Vec<Topic>, LogError> {
        self.database
            .readers
            .with("cannot read the topics", |connection| topics::page(connection, after, limit))
    }

    fn accepted_before(&self, topic: TopicId, time: Timestamp) -> Result<Offset, LogError> {
        self.database
            .readers
            .with("cannot read a topic", |connection| topics::before(connection, topic, time))?
            .ok_or_else(|| no_topic(topic))
    }

    fn put_target_then(&self, new: NewTarget, done: Done<Target>) {
        self.ask(ROW_BYTES, move |run| targets::put(run, &new), done);
    }

    fn end_target_then(&self, id: TargetId, why: Ending, done: Done<bool>) {
        self.ask(ROW_BYTES, move |run| targets::end(run, id, why).map(Ok), done);
    }

    fn save_progress_then(&self, progress: Vec<Progress>, done: Done<Vec<TargetId>>) {
        self.ask(
            progress.len() * PROGRESS_BYTES,
            move |run| targets::save_progress(run, &progress),
            done,
        );
    }

    fn replay(&self, id: TargetId, to: Offset) -> Result<Option<Target>, LogError> {
        self.call(ROW_BYTES, move |run| targets::replay(run, id, to).map(Ok))
    }

    fn target(&self, id: TargetId) -> Result<Option<Target>, LogError> {
        self.database
            .readers
            .with("cannot read a target", |connection| targets::one(connection, id))
    }

    fn find_target(
        &self,
        topic: TopicId,
        address: &str,
        kind: TargetKind,
    ) -> Result<Option<Target>, LogError> {
        self.database.readers.with("cannot find a target", |connection| {
            targets::find(connection, topic, address, kind)
        })
    }

    fn targets_of(
        &self,
        topic: TopicId,
        after: TargetId,
        limit: usize,
    ) -> Result<Vec<Target>, LogError> {
        self.database.readers.with("cannot read the targets", |connection| {
            targets::page_of(connection, topic, after, limit)
        })
    }

    fn all_targets(&self, after: TargetId, limit: usize) -> Result<Vec<Target>, LogError> {
        self.database
            .readers
            .with("cannot read the targets", |connection| targets::page(connection, after, limit))
    }

    fn leases_over(&self, now: Timestamp, limit: usize) -> Result<Vec<TargetId>, LogError> {
        self.database.readers.with("cannot read the leases", |connection| {
            targets::leases_over(connection, now, limit)
        })
    }

    fn attempts(&self, id: TargetId) -> Result<Vec<Attempt>, LogError> {
        self.database
            .readers
            .with("cannot read attempts", |connection| targets::attempts(connection, id))
    }

    fn dead_letters(
        &self,
        id: TargetId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, LogError> {
        self.database.readers.with("cannot read dead letters", |connection| {
            targets::dead(connection, id, after, limit)
        })
    }

    fn ended_targets(&self, before: i64, limit: usize) -> Result<Vec<EndedTarget>, LogError> {
        self.database.readers.with("cannot read ended targets", |connection| {
            targets::ended(connection, before, limit)
        })
    }

    fn put_verification_then(&self, new: NewVerification, done: Done<VerificationId>) {
        self.ask(ROW_BYTES, move |run| verifications::put(run, &new), done);
    }

    fn verification(&self, id: VerificationId) -> Result<Option<Verification>, LogError> {
        self.database
            .readers
            .with("cannot read a verification", |connection| verifications::one(connection, id))
    }

    fn verifications(
        &self,
        after: VerificationId,
        limit: usize,
    ) -> Result<Vec<Verification>, LogError> {
        self.database.readers.with("cannot read the verifications", |connection| {
            verifications::page(connection, after, limit)
        })
    }

    fn retry_verification_then(
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

    fn finish_verification_then(
        &self,
        id: VerificationId,
        settled: Settled,
        done: Done<Option<Target>>,
    ) {
        self.ask(ROW_BYTES, move |run| verifications::finish(run, id, &settled), done);
    }

    fn summary(&self, since: Timestamp) -> Result<HubSummary, LogError> {
        self.database.readers.with("cannot read the state of the deliveries", |connection| {
            summarise(connection, since)
        })
    }

    fn sizes(&self) -> Result<Sizes, LogError> {
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

impl TopicLog for SqliteHub {
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
