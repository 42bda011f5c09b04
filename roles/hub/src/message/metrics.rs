//! Metrics of the hub.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Totals since the start, and the present activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubMetrics {
    /// Notifications that were accepted and stored.
    pub accepted: u64,
    /// Requests to publish that were refused.
    pub refused: u64,
    /// Topics that were fetched because they were reported as changed.
    pub fetched: u64,
    /// Deliveries that the recipient accepted.
    pub delivered: u64,
    /// Attempts to deliver that failed.
    pub failed: u64,
    /// Notifications that were given up, once for each target.
    pub given_up: u64,
    /// Requests to subscribe or to unsubscribe that were accepted.
    pub requested: u64,
    /// Requests that the callback confirmed.
    pub confirmed: u64,
    /// Requests that the callback did not confirm.
    pub unconfirmed: u64,
    /// Subscriptions that ended, for any reason.
    pub ended: u64,
    /// Number of targets: subscriptions, and other hubs.
    pub targets: u64,
    /// Number of topics at present.
    pub topics: u64,
    /// Number of deliveries that are running.
    pub in_flight: u64,
    /// Number of running deliveries that are slow.
    pub slow: u64,
    /// Deliveries that wait for a place.
    pub ready: u64,
    /// Deliveries that wait for the time of their next attempt.
    pub waiting: u64,
    /// Origins that are paused after failures.
    pub broken_origins: u64,
    /// Other hubs that do not accept notifications, once for each topic.
    pub failing_hubs: u64,
    /// Requests whose callback did not answer yet.
    pub unverified: u64,
    /// Nodes that share the store; 0 if only this process delivers from it.
    pub nodes: u64,
    /// Shards of the targets that belong to this node; 0 if only this process delivers.
    pub shards: u64,
    /// Time since the last renewal of this node's lease; zero if only this process delivers.
    pub since_renewal: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) fetched: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) given_up: AtomicU64,
    pub(crate) requested: AtomicU64,
    pub(crate) confirmed: AtomicU64,
    pub(crate) unconfirmed: AtomicU64,
    pub(crate) ended: AtomicU64,
}

impl Counters {
    pub(crate) fn totals(&self) -> HubMetrics {
        HubMetrics {
            accepted: self.accepted.load(Relaxed),
            refused: self.refused.load(Relaxed),
            fetched: self.fetched.load(Relaxed),
            delivered: self.delivered.load(Relaxed),
            failed: self.failed.load(Relaxed),
            given_up: self.given_up.load(Relaxed),
            requested: self.requested.load(Relaxed),
            confirmed: self.confirmed.load(Relaxed),
            unconfirmed: self.unconfirmed.load(Relaxed),
            ended: self.ended.load(Relaxed),
            ..HubMetrics::default()
        }
    }
}
