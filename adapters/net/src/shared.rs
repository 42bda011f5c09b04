//! What do the clients of several threads share?

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;
use crate::options::Options;
use crate::retry::jitter;
use crate::tls;

/// Most origins remembered with their pauses; those nobody uses are forgotten first.
const MAX_HOSTS: usize = 4_096;

/// Options, counters, pauses and the number of requests in flight, shared by all clients made from it.
pub struct Shared {
    pub(crate) options: Options,
    counts: Counts,
    hosts: Mutex<HashMap<String, Arc<HostState>>>,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    epoch: Instant,
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    bytes_received: AtomicU64,
    retries: AtomicU64,
}

/// Totals since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Requests sent, redirects and repetitions included.
    pub requests: u64,
    /// Bytes received, headers included, before unpacking and after TLS.
    pub bytes_received: u64,
    /// Requests repeated, for whatever reason.
    pub retries: u64,
}

/// What all clients know about one origin.
pub(crate) struct HostState {
    in_flight: Arc<Semaphore>,
    /// Milliseconds after the epoch until which nobody sends; 0 for no pause.
    paused_until: AtomicU64,
}

impl Shared {
    /// One per process or per run.
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            options,
            counts: Counts::default(),
            hosts: Mutex::default(),
            tls: OnceLock::new(),
            epoch: Instant::now(),
        })
    }

    /// The options it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Totals so far.
    pub fn counters(&self) -> Counters {
        Counters {
            requests: self.counts.requests.load(Relaxed),
            bytes_received: self.counts.bytes_received.load(Relaxed),
            retries: self.counts.retries.load(Relaxed),
        }
    }

    pub(crate) fn count_request(&self) {
        self.counts.requests.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_bytes(&self, bytes: u64) {
        self.counts.bytes_received.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn count_retry(&self) {
        self.counts.retries.fetch_add(1, Relaxed);
    }

    /// The TLS settings, read on first use.
    pub(crate) fn tls(&self) -> Result<Arc<ClientConfig>, Error> {
        match self.tls.get_or_init(|| tls::client_config(self.options.extra_roots.as_deref())) {
            Ok(config) => Ok(config.clone()),
            Err(message) => Err(Error::new(crate::ErrorKind::Tls, "", message.clone())
                .with_help("give a PEM file with at least one certificate as extra roots")),
        }
    }

    pub(crate) fn host(&self, key: &str) -> Arc<HostState> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = hosts.get(key) {
            return host.clone();
        }
        if hosts.len() >= MAX_HOSTS {
            hosts.retain(|_, host| Arc::strong_count(host) > 1);
        }
        let host = Arc::new(HostState {
            in_flight: Arc::new(Semaphore::new(self.options.connections_per_host.max(1))),
            paused_until: AtomicU64::new(0),
        });
        hosts.insert(key.to_owned(), host.clone());
        host
    }

    /// Nobody sends to this origin for that long.
    pub(crate) fn pause(&self, host: &HostState, pause: Duration) {
        let until = self.epoch.elapsed() + pause;
        host.paused_until.fetch_max(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Waits until the origin's pause is over and one of its places is free.
    pub(crate) async fn enter(&self, host: &HostState) -> OwnedSemaphorePermit {
        let permit = match host.in_flight.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => host.in_flight.clone().acquire_owned().await.expect("the semaphore is never closed"),
        };
        loop {
            let until = host.paused_until.load(Relaxed);
            if until == 0 {
                return permit;
            }
            let Some(left) = Duration::from_millis(until).checked_sub(self.epoch.elapsed()) else { return permit };
            // Spread, so that all waiters do not come back in the same instant.
            tokio::time::sleep(left + jitter(Duration::from_secs(1).min(left / 4))).await;
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}
