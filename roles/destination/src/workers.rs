//! Who fetches, how many at a time, and how does work reach them? Threads with a runtime and connections each.

use crate::desk::Desk;
use crate::fetch::{Fetcher, Outcome, Rules};
use crate::place::{Ground, LastDir};
use abreast_net::{Client, Shared};
use abreast_store::mirror::Task;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// How soon a stop is noticed while waiting for a server.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// A few items in the order of their URIs, handed out together so that folders repeat.
pub(crate) type Chunk = Vec<Task>;
/// The same items with what became of them; nothing for those not begun or broken off.
pub(crate) type DoneChunk = Vec<(Task, Option<Outcome>)>;

/// What every thread needs.
#[derive(Clone)]
pub(crate) struct Crew {
    pub(crate) ground: Arc<Ground>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) stop: Arc<AtomicBool>,
    /// A task ended without giving its items back.
    pub(crate) lost: Arc<AtomicBool>,
}

/// Tells of a chunk whose task panicked, so that nobody waits for it.
struct Returning<'a> {
    crew: &'a Crew,
    done: &'a Sender<DoneChunk>,
    armed: bool,
}

impl Drop for Returning<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.crew.lost.store(true, Ordering::Relaxed);
            self.crew.stop.store(true, Ordering::Relaxed);
            let _ = self.done.send(DoneChunk::new());
        }
    }
}

impl Crew {
    /// One thread's life: `connections` items at a time until there is no more work.
    pub(crate) fn run(self, thread: usize, connections: usize, done: &Sender<DoneChunk>) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = Client::new(Arc::clone(&self.shared));
        let tasks = tokio::task::LocalSet::new();
        for _ in 0..connections {
            tasks.spawn_local(self.clone().connection(thread, client.clone(), done.clone()));
        }
        runtime.block_on(tasks);
        Ok(())
    }

    async fn connection(self, thread: usize, client: Client, done: Sender<DoneChunk>) {
        let mut fetcher = Fetcher {
            admission: self.rules.admission.clone(),
            ground: Arc::clone(&self.ground),
            rules: Arc::clone(&self.rules),
            client,
            last: LastDir::default(),
            body: Vec::new(),
        };
        loop {
            let Some(chunk) = self.desk.take(thread).await else { return };
            let mut returning = Returning { crew: &self, done: &done, armed: true };
            let mut stopped = pin!(stopped(&self.stop));
            let mut results = Vec::with_capacity(chunk.len());
            for task in chunk {
                let outcome = if self.stop.load(Ordering::Relaxed) {
                    None
                } else {
                    tokio::select! {
                        biased;
                        outcome = fetcher.fetch(&task) => Some(outcome),
                        () = &mut stopped => None,
                    }
                };
                results.push((task, outcome));
            }
            returning.armed = false;
            if done.send(results).is_err() {
                return;
            }
        }
    }
}

/// Ends when a stop is asked for.
pub(crate) async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(STOP_CHECK).await;
    }
}
