//! Options and counters shared by the clients of several threads.

use std::collections::HashMap;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};
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

/// Connections to an origin that break off with requests in a row, after which requests are not
/// sent in a row.
const BROKEN_MAX: u32 = 3;
/// Useful answers to requests in a row after which earlier connections that broke off do not count.
const FORGIVEN: u32 = 1_000;
/// Consecutive answers to requests in a row that no digest can verify, after which requests are not
/// sent in a row.
const USELESS_MAX: u32 = 16;

/// Options, counters and the number of requests in flight, shared by all clients made from it;
/// pauses and totals are in its budget.
pub struct Shared {
    pub(crate) options: Options,
    counts: Counts,
    /// Whether a server takes more than `connections_per_host` requests.
    takes_many: AtomicBool,
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
    /// Places of requests: more after the server has chosen HTTP/2, or answers requests in a row.
    in_flight: Arc<Semaphore>,
    /// Places of connections of HTTP/1.1 that are in use.
    alone: Arc<Semaphore>,
    /// Requests that wait for a whole connection.
    waiting: AtomicUsize,
    protocol: AtomicU8,
    /// Places that may be added to `in_flight`.
    more: AtomicUsize,
    /// Whether requests may be sent in a row.
    pipelines: AtomicBool,
    /// Connections with requests in a row that broke off, and consecutive useless answers.
    broken: AtomicU32,
    useless: AtomicU32,
    /// Useful answers since `broken` was 0.
    useful: AtomicU32,
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
            self.take_more(usize::MAX);
        }
    }

    /// A place among the requests in flight, unless only one is free.
    pub(crate) fn try_place(&self) -> Option<Place> {
        let mut two = Arc::clone(&self.in_flight).try_acquire_many_owned(2).ok()?;
        Some(Place { _request: two.split(1)?, alone: None })
    }

    /// Waits for a place among the requests in flight.
    pub(crate) async fn place(&self) -> Place {
        Place { _request: acquire(&self.in_flight).await, alone: None }
    }

    /// Adds places of requests, at most this number; true for the first time.
    pub(crate) fn take_more(&self, most: usize) -> bool {
        let more = self.more.swap(0, Relaxed).min(most);
        self.in_flight.add_permits(more);
        more > 0
    }

    /// Whether requests may be sent in a row; with an interval between requests, none are.
    pub(crate) fn pipelines(&self) -> bool {
        self.pipelines.load(Relaxed) && self.pace.has_no_interval()
    }

    /// Sends no more requests in a row.
    pub(crate) fn stop_pipelining(&self, why: &str) {
        if self.pipelines.swap(false, Relaxed) {
            tracing::debug!(why, "requests are not sent in a row");
        }
    }

    /// Records a request in a row that was not answered regularly.
    pub(crate) fn note_fault(&self, fault: RowFault) {
        match fault {
            RowFault::Overtaken => {}
            RowFault::BrokenOff => {
                if self.broken.fetch_add(1, Relaxed) + 1 >= BROKEN_MAX {
                    self.stop_pipelining("connections break off");
                }
            }
            RowFault::Irregular => self.stop_pipelining("an answer is late, or has no length"),
        }
    }

    /// Records whether the answer to a request in a row was useful.
    pub(crate) fn note_use(&self, is_useful: bool) {
        if is_useful {
            if self.useless.load(Relaxed) > 0 {
                self.useless.store(0, Relaxed);
            }
            if self.broken.load(Relaxed) > 0 && self.useful.fetch_add(1, Relaxed) >= FORGIVEN {
                self.broken.store(0, Relaxed);
                self.useful.store(0, Relaxed);
            }
        } else if self.useless.fetch_add(1, Relaxed) + 1 >= USELESS_MAX {
            self.stop_pipelining("answers have no body that a digest can verify");
        }
    }

    /// Whether a request waits for a whole connection.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// The place of a connection, if one is free.
    pub(crate) fn try_alone(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.alone).try_acquire_owned().ok()
    }

    /// Waits for the place of a connection, after requests that wait for a whole connection.
    pub(crate) async fn alone(&self) -> OwnedSemaphorePermit {
        acquire(&self.alone).await
    }
}

/// Why a request in a row got no regular answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFault {
    /// The connection ended with the answer to an earlier request.
    Overtaken,
    /// The connection broke off.
    BrokenOff,
    /// The answer cannot be delimited, or is late.
    Irregular,
}

/// A place among the requests in flight to an origin.
pub(crate) struct Place {
    _request: OwnedSemaphorePermit,
    /// The place of a connection that this request uses alone.
    pub(crate) alone: Option<OwnedSemaphorePermit>,
}

/// Counts a request that waits for a whole connection.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Place {
    /// Waits for a place of a request that shares no connection.
    pub(crate) async fn alone(&mut self, host: &HostState) {
        if self.alone.is_none() {
            let _waiting = Waiting::new(&host.waiting);
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
            takes_many: AtomicBool::new(false),
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

    /// Whether a server takes more than `connections_per_host` requests: by HTTP/2, or in a row.
    pub fn takes_many(&self) -> bool {
        self.takes_many.load(Relaxed)
    }

    pub(crate) fn found_taking_many(&self) {
        self.takes_many.store(true, Relaxed);
    }

    pub(crate) fn count_retry(&self) {
        self.counts.retries.fetch_add(1, Relaxed);
    }

    /// The TLS settings for a server, read on first use.
    pub(crate) fn tls(&self, origin: &Origin) -> Result<Arc<ClientConfig>, Error> {
        let failed = |message: String| Error::new(crate::ErrorKind::Tls, "", message);
        let protocols = tls::protocols(self.options.http2);
        if tls::is_special(&self.options, origin) {
            let mut known = self.special_tls.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(config) = known.get(&origin.key) {
                return Ok(config.clone());
            }
            let config =
                tls::client_config(&self.options, Some(origin), protocols).map_err(|message| {
                    failed(message)
                        .with_help("give PEM files with the certificate and its private key")
                })?;
            known.insert(origin.key.clone(), config.clone());
            return Ok(config);
        }
        match self.tls.get_or_init(|| tls::client_config(&self.options, None, protocols)) {
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
            waiting: AtomicUsize::new(0),
            pipelines: AtomicBool::new(self.options.pipelining),
            broken: AtomicU32::new(0),
            useless: AtomicU32::new(0),
            useful: AtomicU32::new(0),
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
        let place = host.place().await;
        self.wait_while_paused(host).await;
        self.budget.wait_for_turn(&host.pace).await;
        place
    }

    /// Waits until the origin is not paused.
    pub(crate) async fn wait_while_paused(&self, host: &HostState) {
        while let Some(left) = self.budget.pause_left(&host.pace) {
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
