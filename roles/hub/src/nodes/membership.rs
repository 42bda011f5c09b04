//! The lease of this node.

use super::signal::StopSignal;
use crate::deliver::Engine;
use crate::message::outage::Outage;
use crate::tasks::fetch::Fetcher;
use crate::tasks::verify::Verifier;
use abreast_core::LogError;
use abreast_core::hub::{HubNodes, HubShard};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Renewals in one lease. Two may fail before another node takes the shards.
const RENEWALS: u32 = 3;
/// Renewals in one lease while other nodes have shards that this one should get.
const CLAIMS: u32 = 30;
/// Attempts in one lease while renewals fail, at least one per second.
const ATTEMPTS: u32 = 10;
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Renews the lease, and gives shards back.
pub(super) struct LeaseHolder {
    engine: Arc<Engine>,
    verifier: Arc<Verifier>,
    fetcher: Arc<Fetcher>,
    /// Locked during a renewal and a return, so that the answer to a renewal from before a return is
    /// not used after it. `true` if the node has left.
    has_left: Mutex<bool>,
}

/// A lease after its renewal.
pub(super) struct Renewed {
    lease: Duration,
    /// Shards of other nodes that this one should get.
    missing: usize,
}

impl LeaseHolder {
    pub(super) fn new(engine: Arc<Engine>, verifier: Arc<Verifier>, fetcher: Arc<Fetcher>) -> Self {
        Self { engine, verifier, fetcher, has_left: Mutex::new(false) }
    }

    fn nodes(&self) -> Option<&dyn HubNodes> {
        self.engine.store.nodes()
    }

    /// Renews the lease, and starts the work that waited for this.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn renew(&self) -> Result<Renewed, LogError> {
        let has_left = self.has_left.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(nodes) = self.nodes().filter(|_| !*has_left) else {
            return Ok(Renewed { lease: PAUSE_MAX, missing: 0 });
        };
        let started = Instant::now();
        let membership = nodes.renew()?;
        let renewed = Renewed { lease: membership.lease, missing: membership.missing };
        self.engine.held.renewed(started, membership);
        drop(has_left);
        self.engine.start_waiting();
        self.verifier.start_waiting();
        self.fetcher.start_waiting();
        Ok(renewed)
    }

    /// Gives shards back whose targets are not in memory any more. If this fails, the next renewal
    /// assigns them again.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn give_back(&self, shards: &BTreeSet<HubShard>) -> Result<(), LogError> {
        let has_left = self.has_left.lock().unwrap_or_else(PoisonError::into_inner);
        let list: Vec<_> = shards.iter().copied().collect();
        let given = match self.nodes().filter(|_| !*has_left) {
            Some(nodes) => nodes.give_back(&list),
            None => Ok(()),
        };
        self.engine.held.left(shards);
        given
    }

    /// Renews the lease until the signal, then ends it.
    pub(super) fn run(&self, stop: &StopSignal) {
        const HELP: &str =
            "check the database; this node delivers nothing meanwhile, and other nodes take over";
        let (mut pause, mut outage) = (PAUSE_MIN, Outage::default());
        let mut lease = Duration::ZERO;
        while !stop.wait(pause) {
            let started = Instant::now();
            let renewed = self.renew();
            outage.log("renewals of the lease of this node", HELP, &renewed);
            match renewed {
                Ok(renewed) => {
                    lease = renewed.lease;
                    let renewals = if renewed.missing > 0 { CLAIMS } else { RENEWALS };
                    pause = (lease / renewals).saturating_sub(started.elapsed()).max(PAUSE_MIN);
                }
                Err(error) => {
                    self.engine.held.not_renewed(error.to_string());
                    pause = (lease / ATTEMPTS).clamp(PAUSE_MIN, PAUSE_MAX);
                }
            }
        }
        let mut has_left = self.has_left.lock().unwrap_or_else(PoisonError::into_inner);
        *has_left = true;
        if let Some(Err(error)) = self.nodes().map(HubNodes::leave) {
            tracing::warn!(%error, "the lease was not ended; other nodes take over after its end");
        }
    }
}
