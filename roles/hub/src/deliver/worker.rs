//! The loop of a worker with lanes: jobs that are due start, and each continues with the next job.

use super::lanes::CancelSignal;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;

/// Work of one kind, in lanes.
pub(crate) trait Worker: Send + Sync + 'static {
    type Job: Send;

    /// Wakes [`run`], for example when there is a new job.
    fn wake(&self) -> &Notify;

    /// Moves all that is due to the lanes. Returns `false` when the worker ends.
    fn prepare(self: &Arc<Self>, now: Instant) -> bool;

    /// The next job that may start; the signal can abort it.
    fn next_job(&self, cut: &Arc<CancelSignal>) -> Option<Self::Job>;

    /// Carries out a job and returns the next one.
    fn work(
        &self,
        job: Self::Job,
        cut: &Arc<CancelSignal>,
    ) -> impl Future<Output = Option<Self::Job>> + Send;

    /// Time of the next call of [`Worker::prepare`] if nothing wakes the worker.
    fn due(&self, now: Instant) -> Option<Instant>;
}

/// Starts as many jobs as there are free places; each place then continues by itself.
pub(crate) async fn run<W: Worker>(worker: Arc<W>) {
    loop {
        let now = Instant::now();
        if !worker.prepare(now) {
            return;
        }
        let mut cut = Arc::default();
        while let Some(job) = worker.next_job(&cut) {
            let (worker, cut) = (Arc::clone(&worker), std::mem::take(&mut cut));
            tokio::spawn(async move {
                let mut next = Some(job);
                while let Some(job) = next {
                    next = worker.work(job, &cut).await;
                }
            });
        }
        let wake = worker.wake().notified();
        match worker.due(now) {
            Some(due) => drop(tokio::time::timeout_at(due.into(), wake).await),
            None => wake.await,
        }
    }
}
