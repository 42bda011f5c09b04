//! The store of a hub on PostgreSQL.

use super::job::{Job, Needs};
use super::loaded::Wanted;
use super::node::Node;
use super::transaction::{Answer, HubTransaction};
use super::{progress, summary, targets, topics, verifications};
use crate::database::queue::Queue;
use crate::postgres::client::Client;
use abreast_core::hub::{
    Attempt, DeadLetter, Done, EndedTarget, Ending, HubNodes, HubStore, HubSummary, NewTarget,
    NewVerification, Progress, Settled, Sizes, Target, TargetId, TargetKind, Topic, Verification,
    VerificationId,
};
use abreast_core::{
    Clock, LogError, NewNotification, Notification, Offset, Payload, PublishDone, TopicId, TopicLog,
};
use abreast_webtypes::Timestamp;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

/// Estimated bytes that a request occupies in memory and writes, without bodies. It limits a
/// transaction to about a thousand requests, since each may need a round trip.
pub(crate) const ROW_BYTES: usize = 4_096;
/// Estimated bytes that the progress of a target occupies and writes.
const PROGRESS_BYTES: usize = 128;

/// A hub's topics, targets and verifications in a PostgreSQL database, for any number of nodes.
///
/// A transaction that changes them locks the row of the hub, so the nodes' changes are in one order,
/// and each node reads what the others changed. Progress is recorded without this lock: only the
/// node that has the lease of a target's shard records it. Waiting requests are recorded together,
/// and one whose commit was not answered is looked up by the next transaction.
pub struct PostgresHub {
    pub(crate) client: Arc<Client>,
    pub(crate) queue: Arc<Queue<Job>>,
    pub(crate) node: Arc<Node>,
    pub(crate) thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for PostgresHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresHub").finish_non_exhaustive()
    }
}

impl Drop for PostgresHub {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl PostgresHub {
    fn ask<T: Send + 'static>(
        &self,
        bytes: usize,
        needs: Needs,
        work: impl Fn(&mut HubTransaction<'_>) -> Answer<T> + Send + 'static,
        done: Done<T>,
    ) {
        self.queue.push(Job::new(bytes, needs, None, work, done));
    }

    /// Requests a change of a single target.
    fn change<T: Send + 'static>(
        &self,
        wanted: Wanted,
        work: impl Fn(&mut HubTransaction<'_>) -> Answer<T> + Send + 'static,
        done: Done<T>,
    ) {
        self.queue.push(Job::new(ROW_BYTES, Needs::Hub, Some(wanted), work, done));
    }

    /// Runs a request with the lock of the hub, and waits until it is recorded.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl Fn(&mut HubTransaction<'_>) -> Answer<T> + Send + 'static,
    ) -> Result<T, LogError> {
        let (sender, receiver) = sync_channel(1);
        let done = Box::new(move |result| drop(sender.send(result)));
        self.ask(bytes, Needs::Hub, work, done);
        receiver.recv().unwrap_or_else(|_| Err(closed()))
    }
}

fn closed() -> LogError {
    LogError::new(abreast_core::ErrorKind::Io, "the store is closed")
}

impl HubStore for PostgresHub {
    fn nodes(&self) -> Option<&dyn HubNodes> {
        Some(self)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.client.clock.clone())
    }

    fn check_available(&self) -> Result<(), LogError> {
        const SQL: &str = "SELECT revision FROM abreast.hub WHERE id = 0";
        self.client.query("cannot reach the database", SQL, &[]).map(drop)
    }

    fn find_topic(&self, url: &str) -> Result<Option<TopicId>, LogError> {
        topics::find(&self.client, url)
    }

    fn topic(&self, id: TopicId) -> Result<Option<Topic>, LogError> {
        topics::one(&self.client, id)
    }

    fn topics(&self, after: TopicId, limit: usize) -> Result<Vec<Topic>, LogError> {
        let (topics, seen) = topics::page(&self.client, after, limit)?;
        self.node.saw(seen);
        Ok(topics)
    }

    fn accepted_before(&self, topic: TopicId, time: Timestamp) -> Result<Offset, LogError> {
        topics::before(&self.client, topic, time)
    }

    fn put_target_then(&self, new: NewTarget, done: Done<Target>) {
        let wanted = Wanted::Address(new.topic, new.address.clone(), new.kind);
        self.change(wanted, move |run| targets::put(run, &new), done);
    }

    fn end_target_then(&self, id: TargetId, why: Ending, done: Done<bool>) {
        self.change(Wanted::Id(id), move |run| targets::end(run, id, why).map(Ok), done);
    }

    fn save_progress_then(&self, progress: Vec<Progress>, done: Done<Vec<TargetId>>) {
        self.ask(
            progress.len() * PROGRESS_BYTES,
            Needs::Progress,
            move |run| progress::save(run, &progress),
            done,
        );
    }

    fn replay(&self, id: TargetId, to: Offset) -> Result<Option<Target>, LogError> {
        let (sender, receiver) = sync_channel(1);
        let done = Box::new(move |result| drop(sender.send(result)));
        self.change(Wanted::Id(id), move |run| targets::replay(run, id, to).map(Ok), done);
        receiver.recv().unwrap_or_else(|_| Err(closed()))
    }

    fn target(&self, id: TargetId) -> Result<Option<Target>, LogError> {
        targets::one(&self.client, id)
    }

    fn find_target(
        &self,
        topic: TopicId,
        address: &str,
        kind: TargetKind,
    ) -> Result<Option<Target>, LogError> {
        targets::find(&self.client, topic, address, kind)
    }

    fn targets_of(
        &self,
        topic: TopicId,
        after: TargetId,
        limit: usize,
    ) -> Result<Vec<Target>, LogError> {
        targets::page_of(&self.client, topic, after, limit)
    }

    fn all_targets(&self, after: TargetId, limit: usize) -> Result<Vec<Target>, LogError> {
        targets::page(&self.client, after, limit)
    }

    fn leases_over(&self, now: Timestamp, limit: usize) -> Result<Vec<TargetId>, LogError> {
        targets::leases_over(&self.client, now, limit)
    }

    fn attempts(&self, id: TargetId) -> Result<Vec<Attempt>, LogError> {
        targets::attempts(&self.client, id)
    }

    fn dead_letters(
        &self,
        id: TargetId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, LogError> {
        targets::dead(&self.client, id, after, limit)
    }

    fn ended_targets(&self, before: i64, limit: usize) -> Result<Vec<EndedTarget>, LogError> {
        targets::ended(&self.client, before, limit)
    }

    fn put_verification_then(&self, new: NewVerification, done: Done<VerificationId>) {
        self.ask(ROW_BYTES, Needs::Hub, move |run| verifications::put(run, &new), done);
    }

    fn verification(&self, id: VerificationId) -> Result<Option<Verification>, LogError> {
        verifications::one(&self.client, id)
    }

    fn verifications(
        &self,
        after: VerificationId,
        limit: usize,
    ) -> Result<Vec<Verification>, LogError> {
        verifications::page(&self.client, after, limit)
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
            Needs::Rows,
            move |run| verifications::retry(run, id, attempts, next_at).map(Ok),
            done,
        );
    }

    fn finish_verification_then(
        &self,
        id: VerificationId,
        settled: Settled,
        done: Done<Option<Target>>,
    ) {
        self.ask(ROW_BYTES, Needs::Hub, move |run| verifications::finish(run, id, &settled), done);
    }

    fn summary(&self, since: Timestamp) -> Result<HubSummary, LogError> {
        summary::summarise(&self.client, since)
    }

    fn sizes(&self) -> Result<Sizes, LogError> {
        summary::sizes(&self.client)
    }
}

impl TopicLog for PostgresHub {
    fn open_topic(&self, url: &str) -> Result<TopicId, LogError> {
        if let Some(found) = topics::find(&self.client, url)? {
            return Ok(found);
        }
        let url = url.to_owned();
        self.call(ROW_BYTES, move |run| topics::open(run, &url))
    }

    fn publish_then(&self, topic: TopicId, notification: NewNotification, done: PublishDone) {
        let body = match &notification.payload {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Changes { .. } => 0,
        };
        let notification = Arc::new(notification);
        // Notifications share a round trip.
        let bytes = ROW_BYTES / 8 + body + notification.links.len();
        self.ask(bytes, Needs::Hub, move |run| topics::publish(run, topic, &notification), done);
    }

    fn head(&self, topic: TopicId) -> Result<Offset, LogError> {
        let (head, seen) = topics::head(&self.client, topic)?;
        self.node.saw(seen);
        Ok(head)
    }

    fn read(
        &self,
        topic: TopicId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<Notification>, LogError> {
        topics::read(&self.client, topic, after, limit)
    }

    /// One transaction drops at most a thousand notifications, so that other requests do not wait
    /// long.
    fn trim(&self, topic: TopicId, up_to: Offset) -> Result<(), LogError> {
        while self.call(ROW_BYTES, move |run| topics::trim(run, topic, up_to))? {}
        Ok(())
    }
}
