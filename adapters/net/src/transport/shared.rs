//! Options and counters shared by the clients of several threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustls::ClientConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::address::error::Error;
use crate::address::origin::Origin;
use crate::limits::bandwidth::Throttle;
use crate::limits::budget::{Budget, HostPace};
use crate::limits::pause::jitter;
use crate::settings::options::Options;
use crate::transport::tls;

/// Most origins remembered with their places; unused origins are forgotten first.
const MAX_HOSTS: usize = 4_096;

/// Options, counters and the number of requests in flight, shared by all clients made from it;
/// pauses and totals are in its budget.
pub struct Shared {
    pub(crate) options: Options,
    counts: Counts,
    /// Whether a server has chosen HTTP/2.
    speaks_http2: AtomicBool,
    hosts: Mutex<HashMap<String, Arc<HostState>>>,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    /// TLS settings of servers with a pin or our certificate, by origin.
    special_tls: Mutex<HashMap<String, Arc<ClientConfig>>>,
    budget: Budget,
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    /// Counter to which every connection adds received bytes.
    bytes_received: Arc<AtomicU64>,
    retries: AtomicU64,
}

/// Counters to which a connection adds its received bytes.
pub(crate) struct Totals {
    run: Arc<AtomicU64>,
    budget: Budget,
}

impl Totals {
    pub(crate) fn add(&self, bytes: u64) {
        self.run.fetch_add(bytes, Relaxed);
        self.budget.spend(bytes);
    }

    /// Most bytes of the next read, if there is a limit.
    pub(crate) fn piece(&self) -> Option<u64> {
        self.budget.piece()
    }
}

/// Totals of all clients with one [`Shared`], since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Requests sent, redirects and repetitions included.
    pub requests: u64,
    /// Bytes received, headers included, before unpacking and after TLS.
    pub bytes_received: u64,
    /// Repeated requests, for any reason.
    pub retries: u64,
}

/// The protocol of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Protocol {
    /// The server has not chosen yet.
    Unknown,
    Http1,
    Http2,
}

/// Values of an origin, shared by all clients.
pub(crate) struct HostState {
    /// Places of requests: more after the server has chosen HTTP/2.
    in_flight: Arc<Semaphore>,
    /// Places of requests that share no connection.
    alone: Arc<Semaphore>,
    protocol: AtomicU8,
    /// Places that are added when the server chooses HTTP/2.
    more: AtomicUsize,
    pace: Arc<HostPace>,
    /// Whether the log has a warning that the origin cannot be reached.
    pub(crate) reported: AtomicBool,
}

impl HostState {
    pub(crate) fn protocol(&self) -> Protocol {
        match self.protocol.load(Relaxed) {
            1 => Protocol::Http1,
            2 => Protocol::Http2,
            _ => Protocol::Unknown,
        }
    }

    /// Records the protocol that the server has chosen.
    pub(crate) fn set_protocol(&self, protocol: Protocol) {
        self.protocol.store(protocol as u8, Relaxed);
        if protocol == Protocol::Http2 {
            self.in_flight.add_permits(self.more.swap(0, Relaxed));
        }
    }
}

/// A place among the requests in flight to an origin.
pub(crate) struct Place {
    _request: OwnedSemaphorePermit,
    alone: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// Waits for a place of a request that shares no connection.
    pub(crate) async fn alone(&mut self, host: &HostState) {
        if self.alone.is_none() {
            self.alone = Some(acquire(&host.alone).await);
        }
    }
}

async fn acquire(places: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    match Arc::clone(places).try_acquire_owned() {
        Ok(permit) => permit,
        Err(_) => Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed"),
    }
}

impl Shared {
    /// Creates the shared values; one per process or per run.
    pub fn new(options: Options) -> Arc<Self> {
        let own = || Budget::new(options.bandwidth.clone());
        let budget = options.budget.clone().unwrap_or_else(own);
        Arc::new(Self {
            options,
            budget,
            counts: Counts::default(),
            speaks_http2: AtomicBool::new(false),
            hosts: Mutex::default(),
            tls: OnceLock::new(),
            special_tls: Mutex::default(),
        })
    }

    /// The options with which it was created.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The totals of all clients up to now.
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
    pub(crate) fn totals(&self) -> Totals {
        Totals { run: Arc::clone(&self.counts.bytes_received), budget: self.budget.clone() }
    }

    /// The budget that limits the requests.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Whether a server has chosen HTTP/2, so that `streams_per_host` requests can be in flight to it.
    pub fn speaks_http2(&self) -> bool {
        self.speaks_http2.load(Relaxed)
    }

    pub(crate) fn http2_was_chosen(&self) {
        self.speaks_http2.store(true, Relaxed);
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
        self.budget.throttle()
    }

    pub(crate) fn host(&self, key: &str) -> Arc<HostState> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = hosts.get(key) {
            return host.clone();
        }
        if hosts.len() >= MAX_HOSTS {
            hosts.retain(|_, host| Arc::strong_count(host) > 1);
        }
        let connections = self.options.connections_per_host.max(1);
        let host = Arc::new(HostState {
            in_flight: Arc::new(Semaphore::new(connections)),
            alone: Arc::new(Semaphore::new(connections)),
            protocol: AtomicU8::new(Protocol::Unknown as u8),
            more: AtomicUsize::new(self.options.streams_per_host.saturating_sub(connections)),
            pace: self.budget.pace(key, self.options.request_interval),
            reported: AtomicBool::new(false),
        });
        hosts.insert(key.to_owned(), host.clone());
        host
    }

    pub(crate) fn is_paused(&self, host: &HostState) -> bool {
        self.budget.is_paused(&host.pace)
    }

    /// Pauses all requests to this origin.
    pub(crate) fn pause(&self, host: &HostState, pause: Duration) {
        self.budget.pause(&host.pace, pause);
    }

    /// Sets the least time between the starts of two requests to this origin.
    pub(crate) fn set_interval(host: &HostState, interval: Duration) {
        host.pace.set_interval(interval);
    }

    /// Waits until the origin is not paused, has a free place, and this request may start.
    pub(crate) async fn enter(&self, host: &HostState) -> Place {
        let place = Place { _request: acquire(&host.in_flight).await, alone: None };
        loop {
            let Some(left) = self.budget.pause_left(&host.pace) else {
                self.budget.wait_for_turn(&host.pace).await;
                return place;
            };
            // A random part, so that waiting requests do not all start at the same instant.
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
