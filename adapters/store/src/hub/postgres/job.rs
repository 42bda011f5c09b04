//! Requests to the writer, which may be tried several times.

use super::loaded::Wanted;
use super::transaction::{Answer, HubTransaction};
use crate::database::queue::{Limits, QueueItem};
use crate::postgres::failure::Failure;
use abreast_core::hub::Done;
use abreast_core::{LogError, PUBLISH_PATIENCE};

/// Most waiting requests; then callers block.
const JOBS_MAX: usize = 8_192;
/// Most bytes in waiting requests; then callers block.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// No request is added to a transaction that has this many bytes.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The rows that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Progress of this node's targets.
    Progress,
    /// Rows that are not counted and not read by other nodes.
    Rows,
    /// The whole hub, which is locked.
    Hub,
}

/// A request to the writer, with its size.
pub(crate) struct Job {
    bytes: usize,
    pub(crate) needs: Needs,
    /// The target, which is read together with the targets of other requests.
    pub(crate) wanted: Option<Wanted>,
    task: Box<dyn Task>,
}

impl Job {
    /// `bytes` is an estimate of the memory that the request occupies and of the bytes that it
    /// writes. `work` may be called several times, each time in a new transaction.
    pub(crate) fn new<T: Send + 'static>(
        bytes: usize,
        needs: Needs,
        wanted: Option<Wanted>,
        work: impl Fn(&mut HubTransaction<'_>) -> Answer<T> + Send + 'static,
        done: Done<T>,
    ) -> Self {
        Self { bytes, needs, wanted, task: Box::new(PendingRequest { work, done, result: None }) }
    }

    pub(crate) fn run(&mut self, run: &mut HubTransaction<'_>) -> Result<(), Failure> {
        self.task.run(run)
    }

    /// Reports the result of the last run.
    pub(crate) fn reply(self) {
        self.task.reply();
    }
}

trait Task: Send {
    fn run(&mut self, run: &mut HubTransaction<'_>) -> Result<(), Failure>;
    fn reply(self: Box<Self>);
    fn refuse(self: Box<Self>, why: LogError);
}

struct PendingRequest<W, T> {
    work: W,
    done: Done<T>,
    result: Option<Result<T, LogError>>,
}

impl<T: Send, W: Fn(&mut HubTransaction<'_>) -> Answer<T> + Send> Task for PendingRequest<W, T> {
    fn run(&mut self, run: &mut HubTransaction<'_>) -> Result<(), Failure> {
        self.result = Some((self.work)(run)?);
        Ok(())
    }

    fn reply(self: Box<Self>) {
        if let Some(result) = self.result {
            (self.done)(result);
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
