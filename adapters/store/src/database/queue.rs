//! The bounded queue of jobs for the writer.

use abreast_core::{ErrorKind, LogError};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Limits of a queue, in the unit of its items.
pub(crate) struct Limits {
    /// Most waiting jobs; then callers block.
    pub(crate) jobs: usize,
    /// Most weight of the waiting jobs; then callers block. A single job may have more if the queue
    /// is empty.
    pub(crate) weight: usize,
    /// A group that reaches this weight gets no more jobs.
    pub(crate) group: usize,
    /// How long a caller blocks before its job is refused; `None` for no limit.
    pub(crate) patience: Option<Duration>,
}

/// An item of a [`Queue`].
pub(crate) trait QueueItem {
    const LIMITS: Limits;

    /// Weight of the item, in the unit of the limits.
    fn weight(&self) -> usize;

    /// Reports to the caller that the item will not be processed.
    fn refuse(self, why: LogError);
}

struct Waiting<J> {
    jobs: VecDeque<J>,
    weight: usize,
    closed: bool,
}

/// A bounded queue with one reader, which takes the waiting jobs as a group.
pub(crate) struct Queue<J> {
    waiting: Mutex<Waiting<J>>,
    arrived: Condvar,
    left: Condvar,
}

impl<J> Default for Queue<J> {
    fn default() -> Self {
        let waiting = Mutex::new(Waiting { jobs: VecDeque::new(), weight: 0, closed: false });
        Self { waiting, arrived: Condvar::new(), left: Condvar::new() }
    }
}

impl<J: QueueItem> Queue<J> {
    /// Adds a job; blocks while the queue is full. The job is refused after [`Queue::close`], and
    /// when the patience is over.
    pub(crate) fn push(&self, job: J) {
        let weight = job.weight();
        let is_full = |waiting: &mut Waiting<J>| {
            !waiting.closed
                && !waiting.jobs.is_empty()
                && (waiting.jobs.len() >= J::LIMITS.jobs
                    || waiting.weight + weight > J::LIMITS.weight)
        };
        let begun = Instant::now();
        let mut waiting = self.lock();
        while is_full(&mut waiting) {
            waiting = match J::LIMITS
                .patience
                .map(|patience| patience.saturating_sub(begun.elapsed()))
            {
                None => self.left.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => {
                    drop(waiting);
                    job.refuse(busy());
                    return;
                }
                Some(rest) => {
                    self.left.wait_timeout(waiting, rest).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        if waiting.closed {
            drop(waiting);
            job.refuse(closed());
            return;
        }
        waiting.weight += weight;
        waiting.jobs.push_back(job);
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Waits for jobs and takes a group. Returns an empty group when the queue is closed and empty.
    pub(crate) fn take(&self) -> Vec<J> {
        let mut waiting = self.lock();
        while waiting.jobs.is_empty() && !waiting.closed {
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut group, mut taken) = (Vec::new(), 0);
        while let Some(next) = waiting.jobs.front() {
            let weight = next.weight();
            if !group.is_empty() && taken + weight > J::LIMITS.group {
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

    /// Closes the queue, and refuses the waiting jobs: its reader ended.
    pub(crate) fn abandon(&self) {
        self.close();
        let jobs = std::mem::take(&mut self.lock().jobs);
        for job in jobs {
            job.refuse(closed());
        }
    }
}

impl<J> Queue<J> {
    /// Refuses new jobs; waiting jobs are still taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
        self.left.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<J>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Abandons a queue when its reader ends, also by a panic.
pub(crate) struct AbandonOnDrop<'q, J: QueueItem>(pub(crate) &'q Queue<J>);

impl<J: QueueItem> Drop for AbandonOnDrop<'_, J> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Calls a caller's function; a panic in it must not end the writer.
pub(crate) fn answer(reply: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(reply)).is_err() {
        tracing::error!(
            "the callback of a request panicked; the recorded changes are not affected"
        );
    }
}

fn closed() -> LogError {
    LogError::new(ErrorKind::Io, "the store is closed; nothing more is recorded")
}

fn busy() -> LogError {
    LogError::new(
        ErrorKind::Busy,
        "too much waits to be recorded\n  help: try again later; a faster disk takes more",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    const JOBS_MAX: usize = 8;

    /// A job of a weight, whose caller blocks for as long as it takes.
    struct Job(usize, Sender<ErrorKind>);

    impl QueueItem for Job {
        const LIMITS: Limits =
            Limits { jobs: JOBS_MAX, weight: 20_000, group: 1_000, patience: None };

        fn weight(&self) -> usize {
            self.0
        }

        fn refuse(self, why: LogError) {
            self.1.send(why.kind()).unwrap();
        }
    }

    /// One whose caller gives up at once.
    struct ImpatientJob(Job);

    impl QueueItem for ImpatientJob {
        const LIMITS: Limits = Limits { patience: Some(Duration::ZERO), ..Job::LIMITS };

        fn weight(&self) -> usize {
            self.0.weight()
        }

        fn refuse(self, why: LogError) {
            self.0.refuse(why);
        }
    }

    fn job(weight: usize) -> (Job, Receiver<ErrorKind>) {
        let (sender, receiver) = channel();
        (Job(weight, sender), receiver)
    }

    #[test]
    fn waiting_jobs_are_taken_as_groups_up_to_the_limit() {
        let queue = Queue::default();
        for weight in [1, 999, 1, 5_000, 1] {
            queue.push(job(weight).0);
        }
        let sizes: Vec<usize> = (0..4).map(|_| queue.take().len()).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
    }

    #[test]
    fn callers_block_while_too_much_is_waiting() {
        let queue = Queue::default();
        for _ in 0..JOBS_MAX {
            queue.push(job(1).0);
        }
        let (sender, entered) = channel();
        std::thread::scope(|scope| {
            let queue = &queue;
            scope.spawn(move || {
                queue.push(job(1).0);
                sender.send(()).unwrap();
            });
            assert!(entered.try_recv().is_err());
            assert_eq!(queue.take().len(), JOBS_MAX);
            entered.recv().unwrap();
        });
    }

    #[test]
    fn impatient_caller_gets_an_error_when_the_queue_is_full() {
        let queue = Queue::default();
        let (large, _kept) = job(100_000);
        queue.push(ImpatientJob(large)); // alone it may have any weight
        let (next, refused) = job(1);
        queue.push(ImpatientJob(next));
        assert_eq!(refused.recv().unwrap(), ErrorKind::Busy);
        assert_eq!(queue.take().len(), 1);
    }

    #[test]
    fn a_closed_queue_answers_at_once() {
        let queue = Queue::default();
        queue.close();
        let (job, refused) = job(1);
        queue.push(job);
        assert_eq!(refused.recv().unwrap(), ErrorKind::Io);
        assert!(queue.take().is_empty());
    }
}
