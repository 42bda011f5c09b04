//! This process as one of several nodes that share the store of a hub: it renews its lease, loads the
//! targets of its shards, gives shards to new nodes, and follows the changes of other nodes.

mod follower;
mod membership;
mod signal;

use crate::deliver::Engine;
use crate::message::error::HubError;
use crate::tasks::fetch::Fetcher;
use crate::tasks::verify::Verifier;
use abreast_core::hub::HubRevision;
use abreast_core::retry_at_start;
use follower::Follower;
use membership::LeaseHolder;
use signal::StopSignal;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Longest time to wait for the threads of a node when the hub stops.
const FAREWELL: Duration = Duration::from_secs(5);

/// The threads of a node. They have threads of their own, so that a renewal never waits for
/// deliveries that read a slow store.
pub(crate) struct Node {
    stop: Arc<StopSignal>,
    /// Ends when both threads have ended.
    ended: Receiver<()>,
}

impl Node {
    /// Joins the nodes, and starts the threads. `revision` is the revision of the store before
    /// anything was read from it.
    ///
    /// # Errors
    /// When the first renewal fails for some seconds, or a thread cannot be started.
    pub(crate) fn start(
        engine: Arc<Engine>,
        verifier: Arc<Verifier>,
        fetcher: Arc<Fetcher>,
        revision: HubRevision,
    ) -> Result<Self, HubError> {
        let (alive, ended) = channel();
        let stop = Arc::new(StopSignal::default());
        let node = Self { stop: Arc::clone(&stop), ended };
        let waiting = (Arc::clone(&verifier), Arc::clone(&fetcher));
        let holder = Arc::new(LeaseHolder::new(Arc::clone(&engine), waiting.0, waiting.1));
        retry_at_start(|| holder.renew())?;
        let follower = Follower::new(engine, verifier, fetcher, Arc::clone(&holder), revision);
        let (signal, running) = (Arc::clone(&stop), alive.clone());
        start("abreast-hub-lease", running, move || holder.run(&signal))?;
        start("abreast-hub-nodes", alive, move || follower.run(&stop))?;
        Ok(node)
    }

    /// Gives all shards back, after the last progress was recorded. Blocks, for a short time.
    pub(crate) fn leave(self) {
        self.stop.set();
        if self.ended.recv_timeout(FAREWELL) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!(
                "the store did not answer in time; other nodes take over after the lease"
            );
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.set();
    }
}

/// Starts a thread that has `running` until it ends.
fn start(
    name: &str,
    running: Sender<()>,
    work: impl FnOnce() + Send + 'static,
) -> Result<(), HubError> {
    let run = move || {
        work();
        drop(running);
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    thread.map(drop).map_err(HubError::Thread)
}
