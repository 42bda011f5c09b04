//! Recording a group of requests in a hub's store.

use super::topics::{self};
use super::transaction::{Answer, HubTransaction, WriterState};
use super::{targets, verifications};
use crate::database::queue::{Limits, QueueItem};
use crate::database::writer::Recorder;
use abreast_core::hub::Done;
use abreast_core::{Clock, LogError, Offset, PUBLISH_PATIENCE, TopicId};
use rusqlite::Connection;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Most waiting requests; then callers block.
const JOBS_MAX: usize = 8_192;
/// Most bytes in waiting requests; then callers block.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// No request is added to a transaction that has this many bytes.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The last offset of each topic, as readers see it.
pub(crate) type TopicHeads = RwLock<HashMap<TopicId, Offset>>;

/// A request to the writer, with its size.
pub(crate) struct Job {
    bytes: usize,
    task: Box<dyn Task>,
}

impl Job {
    /// `bytes` is an estimate of the memory that the request occupies and of the bytes that it
    /// writes.
    pub(crate) fn new<T: Send + 'static>(
        bytes: usize,
        work: impl FnOnce(&mut HubTransaction<'_>) -> Answer<T> + Send + 'static,
        done: Done<T>,
    ) -> Self {
        Self { bytes, task: Box::new(PendingRequest { work: Some(work), done, came: None }) }
    }
}

trait Task: Send {
    fn run(&mut self, run: &mut HubTransaction<'_>) -> rusqlite::Result<()>;
    fn reply(self: Box<Self>);
    fn refuse(self: Box<Self>, why: LogError);
}

pub(crate) struct PendingRequest<W, T> {
    work: Option<W>,
    done: Done<T>,
    came: Option<Result<T, LogError>>,
}

impl<T: Send, W: FnOnce(&mut HubTransaction<'_>) -> Answer<T> + Send> Task
    for PendingRequest<W, T>
{
    fn run(&mut self, run: &mut HubTransaction<'_>) -> rusqlite::Result<()> {
        if let Some(work) = self.work.take() {
            self.came = Some(work(run)?);
        }
        Ok(())
    }

    fn reply(self: Box<Self>) {
        if let Some(came) = self.came {
            (self.done)(came);
        }
    }

    fn refuse(self: Box<Self>, why: LogError) {
        (self.done)(Err(why));
    }
}

impl QueueItem for Job {
    const LIMITS: Limits = Limits {
        jobs: JOBS_MAX,
        weight: WAITING_BYTES_MAX,
        group: GROUP_BYTES_MAX,
        patience: Some(PUBLISH_PATIENCE),
    };

    fn weight(&self) -> usize {
        self.bytes
    }

    fn refuse(self, why: LogError) {
        self.task.refuse(why);
    }
}

/// The recorder of a hub's store.
pub(crate) struct HubRecorder {
    clock: Arc<dyn Clock>,
    heads: Arc<TopicHeads>,
    known: WriterState,
}

impl HubRecorder {
    pub(crate) fn new(clock: Arc<dyn Clock>, heads: Arc<TopicHeads>) -> Self {
        Self { clock, heads, known: WriterState::default() }
    }
}

impl Recorder for HubRecorder {
    type Job = Job;
    type Outcome = ();

    fn load(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let topics = topics::load(connection)?;
        self.known = WriterState {
            touched: topics.keys().copied().collect(),
            topics,
            verifications: verifications::count(connection)?,
            dead_letters: targets::count_dead(connection)?,
        };
        Ok(())
    }

    fn record(&mut self, connection: &Connection, group: &mut [Job]) -> rusqlite::Result<Vec<()>> {
        self.known.touched.clear();
        let mut run = HubTransaction { connection, known: &mut self.known, now: self.clock.now() };
        for job in group.iter_mut() {
            job.task.run(&mut run)?;
        }
        for topic in &self.known.touched {
            if let Some(state) = self.known.topics.get(topic) {
                topics::store(connection, *topic, state)?;
            }
        }
        Ok(vec![(); group.len()])
    }

    fn committed(&mut self) {
        let mut heads = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        for topic in std::mem::take(&mut self.known.touched) {
            match self.known.topics.get(&topic) {
                Some(state) => heads.insert(topic, Offset(state.head)),
                None => heads.remove(&topic),
            };
        }
    }

    fn reply(job: Job, (): ()) {
        job.task.reply();
    }
}
