//! The threads that fetch, each with a runtime and connections.

use crate::report::meters::short_name;
use crate::report::options::Lanes;
use crate::request::limits::Allowance;
use crate::request::stop::stopped;
use crate::sink::Sink;
use crate::sink::outcome::Outcome;
use crate::transfer::fetch::together::are_enough;
use crate::transfer::fetch::{Fetched, Fetcher};
use crate::transfer::rules::Rules;
use crate::transfer::warm_up::{Connections, Warm};
use crate::transfer::work_queue::WorkQueue;
use abreast_core::Meter;
use abreast_net::{Client, Shared};
use abreast_store::mirror::Task;
use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use tokio::task::spawn_local;

/// The same items with their outcomes; `None` for items that were not started or were interrupted.
pub(crate) type DoneChunk = Vec<(Task, Option<Outcome>)>;

/// The data that every thread needs.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: Arc<WorkQueue>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) allowance: Allowance,
    /// Shows the resources that are being fetched.
    pub(crate) meter: Meter,
    /// A task ended without giving its items back.
    pub(crate) lost: Arc<AtomicBool>,
}

/// Returns a chunk whose task panicked, so that the coordinator does not wait for it.
struct Returning<'a> {
    lost: &'a AtomicBool,
    stop: &'a AtomicBool,
    done: &'a Sender<DoneChunk>,
    armed: bool,
}

impl Drop for Returning<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.lost.store(true, Ordering::Relaxed);
            self.stop.store(true, Ordering::Relaxed);
            let _ = self.done.send(DoneChunk::new());
        }
    }
}

impl Worker {
    /// The work of a thread: fetches an item in each lane in parallel, until the work is done.
    pub(crate) fn run(
        self,
        thread: usize,
        lanes: Lanes,
        connections: Connections,
        done: &Sender<DoneChunk>,
    ) -> std::io::Result<()> {
        let Warm { runtime, client } = connections.ready(&self.shared)?;
        let tasks = tokio::task::LocalSet::new();
        let missing = Rc::new(Cell::new(lanes.most.saturating_sub(lanes.first)));
        for _ in 0..lanes.first {
            let (client, done) = (client.clone(), done.clone());
            tasks.spawn_local(self.clone().lane(thread, client, done, Rc::clone(&missing)));
        }
        runtime.block_on(tasks);
        Ok(())
    }

    /// Fetches the items of chunks. Starts `missing` lanes as soon as a server takes more requests.
    async fn lane(
        self,
        thread: usize,
        client: Client,
        done: Sender<DoneChunk>,
        missing: Rc<Cell<usize>>,
    ) {
        let mut fetcher = Fetcher::new(&self.sink, &self.rules, client.clone(), &self.allowance);
        loop {
            let Some(chunk) = self.queue.take(thread).await else { return };
            let mut returning =
                Returning { lost: &self.lost, stop: &self.stop, done: &done, armed: true };
            let mut stopped = pin!(stopped(&self.stop));
            let mut results = Vec::with_capacity(chunk.len());
            let mut waiting = Vec::new();
            for task in chunk {
                if missing.get() > 0 && self.shared.takes_many() {
                    for _ in 0..missing.take() {
                        let (client, done) = (client.clone(), done.clone());
                        spawn_local(self.clone().lane(thread, client, done, Rc::clone(&missing)));
                    }
                }
                let fetched =
                    if self.stop.load(Ordering::Relaxed) || self.allowance.reached().is_some() {
                        None
                    } else {
                        let _named = self.meter.item(|| short_name(&task.pending.uri));
                        tokio::select! {
                            biased;
                            fetched = fetcher.fetch(&task) => Some(fetched),
                            () = &mut stopped => None,
                        }
                    };
                let outcome = match fetched {
                    Some(Fetched::Done(outcome)) => Some(outcome),
                    Some(Fetched::Held(held)) => {
                        waiting.push((results.len(), held));
                        None
                    }
                    Some(Fetched::NotBegun) | None => None,
                };
                results.push((task, outcome));
                if are_enough(&waiting) {
                    fetcher.store_held(&mut waiting, &mut results).await;
                }
            }
            // Even if the run is asked to stop, since the bodies were received.
            fetcher.store_held(&mut waiting, &mut results).await;
            for (task, outcome) in &mut results {
                if fetcher.is_worth_asking_again(outcome.as_ref())
                    && !self.stop.load(Ordering::Relaxed)
                    && self.allowance.reached().is_none()
                {
                    tokio::select! {
                        biased;
                        () = fetcher.ask_again(task, outcome) => {}
                        () = &mut stopped => {}
                    }
                }
            }
            returning.armed = false;
            if done.send(results).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_task_that_panics_stops_the_others() {
        let (lost, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (done, received) = std::sync::mpsc::channel();
        let (their_lost, their_stop) = (Arc::clone(&lost), Arc::clone(&stop));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let tasks = tokio::task::LocalSet::new();
        // As in `lane`: the one breaks off within a chunk, the other waits for a server that
        // never answers.
        tasks.spawn_local(async move {
            let _returning =
                Returning { lost: &their_lost, stop: &their_stop, done: &done, armed: true };
            panic!("a fault of the program");
        });
        let waiting = Arc::clone(&stop);
        tasks.spawn_local(async move {
            // Bounded, so that a guard that does not stop it fails the test.
            let _ = tokio::time::timeout(Duration::from_secs(10), stopped(&waiting)).await;
        });
        runtime.block_on(tasks);
        assert_eq!(
            received.recv().map(|chunk| chunk.len()),
            Ok(0),
            "the thread that waits for the chunk is notified"
        );
        assert!(lost.load(Ordering::Relaxed) && stop.load(Ordering::Relaxed));
        assert!(received.recv().is_err(), "and nothing more will come");
    }
}
