//! What waits for the writer, and how much of it?

use abreast_core::{
    AppendDone, Appended, Change, Collected, ContentId, ErrorKind, Imported, LogError, NewSet, ResourceSet, SetId,
    VersionPolicy,
};
use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Most jobs that wait; then callers block.
const JOBS_MAX: usize = 64;
/// Most changes in the jobs that wait; then callers block.
const WAITING_MAX: usize = 20_000;
/// No job is added to a transaction that has this many changes.
const GROUP_MAX: usize = 1_000;

/// What the writer is asked to do.
pub(crate) enum Work {
    Append(SetId, Vec<Change>),
    /// Refused before it came here; answered in turn, by the writer's thread.
    Refuse(LogError),
    OpenSet(NewSet),
    Import(SetId, Vec<Imported>),
    CompleteImport(SetId),
    RefreshWitnesses(SetId, Vec<(String, Vec<u8>)>),
    KeepVersions(SetId, bool),
    CollectVersions(SetId, VersionPolicy, usize),
    ForgetContents(Vec<ContentId>),
}

impl Work {
    fn weight(&self) -> usize {
        match self {
            Self::Append(_, changes) => changes.len(),
            Self::Import(_, resources) => resources.len(),
            Self::RefreshWitnesses(_, witnesses) => witnesses.len(),
            Self::CollectVersions(_, _, limit) => *limit,
            Self::ForgetContents(ids) => ids.len(),
            Self::Refuse(_) | Self::OpenSet(_) | Self::CompleteImport(_) | Self::KeepVersions(..) => 1,
        }
    }
}

/// What came of it.
pub(crate) enum Outcome {
    Appended(Appended),
    Set(ResourceSet),
    Collected(Collected),
    Done,
}

/// Who wants to know.
pub(crate) enum Reply {
    Append(AppendDone),
    Call(SyncSender<Result<Outcome, LogError>>),
}

impl Reply {
    pub(crate) fn send(self, result: Result<Outcome, LogError>) {
        match self {
            Self::Append(done) => done(result.map(|outcome| match outcome {
                Outcome::Appended(appended) => appended,
                Outcome::Set(_) | Outcome::Collected(_) | Outcome::Done => Appended::default(),
            })),
            Self::Call(sender) => {
                let _ = sender.send(result); // the caller waits for nothing else
            }
        }
    }
}

/// One job.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) reply: Reply,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    weight: usize,
    closed: bool,
}

/// A bounded queue with one reader, which takes whatever waits as one group.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    left: Condvar,
}

impl Queue {
    /// Adds a job; blocks while too much is waiting. After [`Queue::close`] the job is answered at once.
    pub(crate) fn push(&self, job: Job) {
        let weight = job.work.weight();
        let mut waiting = self.lock();
        while !waiting.closed
            && !waiting.jobs.is_empty()
            && (waiting.jobs.len() >= JOBS_MAX || waiting.weight + weight > WAITING_MAX)
        {
            waiting = self.left.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.closed {
            drop(waiting);
            job.reply.send(Err(closed()));
            return;
        }
        waiting.weight += weight;
        waiting.jobs.push_back(job);
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Waits for jobs and takes a group of them. Nothing when the queue is closed and empty.
    pub(crate) fn take(&self) -> Vec<Job> {
        let mut waiting = self.lock();
        while waiting.jobs.is_empty() && !waiting.closed {
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut group, mut taken) = (Vec::new(), 0);
        while let Some(next) = waiting.jobs.front() {
            let weight = next.work.weight();
            if !group.is_empty() && taken + weight > GROUP_MAX {
                break;
            }
            taken += weight;
            group.extend(waiting.jobs.pop_front());
        }
        waiting.weight -= taken;
        drop(waiting);
        self.left.notify_all();
        group
    }

    /// Nothing more comes in; what waits is still taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
        self.left.notify_all();
    }

    /// Closes it and answers what waits with a failure: nobody will take it any more.
    pub(crate) fn abandon(&self) {
        self.close();
        let jobs = std::mem::take(&mut self.lock().jobs);
        for job in jobs {
            job.reply.send(Err(closed()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> LogError {
    LogError::new(ErrorKind::Io, "the store is closed; nothing more is recorded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{channel, sync_channel};

    fn job(changes: usize) -> Job {
        let (sender, _) = sync_channel(1);
        Job { work: Work::Append(SetId(1), vec![Change::delete("a"); changes]), reply: Reply::Call(sender) }
    }

    #[test]
    fn what_waits_is_taken_as_one_group_up_to_its_limit() {
        let queue = Queue::default();
        for changes in [1, 999, 1, 5_000, 1] {
            queue.push(job(changes));
        }
        let sizes: Vec<usize> = (0..4).map(|_| queue.take().len()).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
    }

    #[test]
    fn callers_block_while_too_much_is_waiting() {
        let queue = Queue::default();
        for _ in 0..JOBS_MAX {
            queue.push(job(1));
        }
        let (sender, entered) = channel();
        std::thread::scope(|scope| {
            let queue = &queue;
            scope.spawn(move || {
                queue.push(job(1));
                sender.send(()).unwrap();
            });
            assert!(entered.try_recv().is_err());
            assert_eq!(queue.take().len(), JOBS_MAX);
            entered.recv().unwrap();
        });
    }

    #[test]
    fn a_closed_queue_answers_at_once() {
        let queue = Queue::default();
        queue.close();
        let (sender, receiver) = sync_channel(1);
        queue.push(Job { work: Work::CompleteImport(SetId(1)), reply: Reply::Call(sender) });
        assert!(receiver.recv().unwrap().is_err());
        assert!(queue.take().is_empty());
    }
}
