//! State shared by the clients of several threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::bandwidth::Throttle;
use crate::error::Error;
use crate::options::Options;
use crate::origin::Origin;
use crate::retry::jitter;
use crate::tls;

/// Most origins remembered with their pauses; those nobody uses are forgotten first.
const MAX_HOSTS: usize = 4_096;

/// Options, counters, pauses and the number of requests in flight, shared by all clients made from
/// it.
pub struct Shared {
    pub(crate) options: Options,
    counts: Counts,
    hosts: Mutex<HashMap<String, Arc<HostState>>>,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    /// TLS settings of servers with a pin or our certificate, by origin.
    special_tls: Mutex<HashMap<String, Arc<ClientConfig>>>,
    throttle: Option<Arc<Throttle>>,
    epoch: Instant,
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    /// Every connection adds to it as bytes arrive.
    bytes_received: Arc<AtomicU64>,
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

/// State of one origin, shared by all clients.
pub(crate) struct HostState {
    in_flight: Arc<Semaphore>,
    /// Milliseconds after the epoch until which nobody sends; 0 for no pause.
    paused_until: AtomicU64,
    /// Microseconds between the beginnings of two requests, and after the epoch when the next one
    /// may begin.
    interval: AtomicU64,
    next: AtomicU64,
    /// That it cannot be reached was reported.
    pub(crate) reported: AtomicBool,
}

impl Shared {
    /// One per process or per run.
    pub fn new(options: Options) -> Arc<Self> {
        let throttle =
            options.bandwidth.clone().map(|bandwidth| Arc::new(Throttle::new(bandwidth)));
        Arc::new(Self {
            options,
            counts: Counts::default(),
            hosts: Mutex::default(),
            tls: OnceLock::new(),
            special_tls: Mutex::default(),
            throttle,
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

    /// Counters of a connection.
    pub(crate) fn bytes_received(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.counts.bytes_received)
    }

    pub(crate) fn count_retry(&self) {
        self.counts.retries.fetch_add(1, Relaxed);
    }

    /// The TLS settings for a server, read on first use.
    pub(crate) fn tls(&self, origin: &Origin) -> Result<Arc<ClientConfig>, Error> {
        let failed = |message: String| Error::new(crate::ErrorKind::Tls, "", message);
        if tls::is_special(&self.options, origin) {
            let mut known = self.special_tls.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(config) = known.get(&origin.key) {
                return Ok(config.clone());
            }
            let config = tls::client_config(&self.options, Some(origin)).map_err(|message| {
                failed(message).with_help("give PEM files with the certificate and its private key")
            })?;
            known.insert(origin.key.clone(), config.clone());
            return Ok(config);
        }
        match self.tls.get_or_init(|| tls::client_config(&self.options, None)) {
            Ok(config) => Ok(config.clone()),
            Err(message) => Err(failed(message.clone())
                .with_help("give a PEM file with at least one certificate as extra roots")),
        }
    }

    /// The limit of bytes per second, if there is one.
    pub(crate) fn throttle(&self) -> Option<Arc<Throttle>> {
        self.throttle.clone()
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
            interval: AtomicU64::new(micros(self.options.request_interval)),
            next: AtomicU64::new(0),
            reported: AtomicBool::new(false),
        });
        hosts.insert(key.to_owned(), host.clone());
        host
    }

    /// Nobody sends to this origin for that long.
    pub(crate) fn is_paused(&self, host: &HostState) -> bool {
        u128::from(host.paused_until.load(Relaxed)) > self.epoch.elapsed().as_millis()
    }

    pub(crate) fn pause(&self, host: &HostState, pause: Duration) {
        let until = self.epoch.elapsed() + pause;
        host.paused_until.fetch_max(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Requests to this origin begin at least that far apart.
    pub(crate) fn set_interval(host: &HostState, interval: Duration) {
        host.interval.fetch_max(micros(interval), Relaxed);
    }

    /// Waits for this request's turn, if requests have to keep a distance.
    async fn wait_for_turn(&self, host: &HostState) {
        let interval = host.interval.load(Relaxed);
        if interval == 0 {
            return;
        }
        let now = micros(self.epoch.elapsed());
        let turn = |next: u64| next.max(now);
        let next = host
            .next
            .fetch_update(Relaxed, Relaxed, |next| Some(turn(next).saturating_add(interval)));
        let wait = turn(next.unwrap_or(0)) - now;
        if wait > 0 {
            tokio::time::sleep(Duration::from_micros(wait)).await;
        }
    }

    /// Waits until the origin's pause is over, one of its places is free, and it is this request's
    /// turn.
    pub(crate) async fn enter(&self, host: &HostState) -> OwnedSemaphorePermit {
        let permit = match host.in_flight.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                host.in_flight.clone().acquire_owned().await.expect("the semaphore is never closed")
            }
        };
        loop {
            let until = host.paused_until.load(Relaxed);
            let left = if until == 0 {
                None
            } else {
                Duration::from_millis(until).checked_sub(self.epoch.elapsed())
            };
            let Some(left) = left else {
                self.wait_for_turn(host).await;
                return permit;
            };
            // Spread, so that all waiters do not come back in the same instant.
            tokio::time::sleep(left + jitter(Duration::from_secs(1).min(left / 4))).await;
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}
