//! The hub: start, requests, shutdown.

use crate::deliver::Engine;
use crate::deliver::options::HubOptions;
use crate::deliver::payloads::{PayloadCache, Payloads};
use crate::deliver::worker;
use crate::message::client::Client;
use crate::message::error::HubError;
use crate::message::metrics::{Counters, HubMetrics};
use crate::message::rates::Rates;
use crate::message::request::{HubAnswer, HubRequest};
use crate::nodes::Node;
use crate::tasks::events::Events;
use crate::tasks::fetch::Fetcher;
use crate::tasks::verify::Verifier;
use crate::tasks::{leases, retention};
use abreast_core::hub::{HubNodes, HubStore};
use abreast_core::{Clock, LogError, Notification, Offset, TopicId};
use abreast_net::{Sender, SenderOptions};
use bytes::Bytes;
use std::collections::VecDeque;
use std::hash::RandomState;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Most threads for DNS queries and for the store. At most half are used for DNS queries, which may
/// block for long.
const BLOCKING_THREADS: usize = 64;
/// Least bytes that a request counts as until it is durable.
const ROOM_UNIT: usize = 4 << 10;
/// How long the hub waits for running work on these threads when it stops.
const FAREWELL: Duration = Duration::from_secs(1);
/// Interval of checks for unused connections.
const TIDY: Duration = Duration::from_secs(10);

/// A hub. Clones are the same hub; it stops with [`Hub::stop`], or when the last clone is dropped.
#[derive(Clone)]
pub struct Hub(Arc<Running>);

struct Running {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

pub(crate) struct Inner {
    pub(crate) options: Arc<HubOptions>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) fetcher: Arc<Fetcher>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) sender: Sender,
    pub(crate) runtime: Handle,
    /// Limit of bytes that are not durable yet, in units of [`ROOM_UNIT`].
    pub(crate) accepting: Semaphore,
    /// Whether the store accepts no more notifications.
    pub(crate) full: Arc<AtomicBool>,
    rates: Mutex<AllRates>,
}

/// Limits on the requests that anonymous clients can make the hub send.
pub(crate) struct AllRates {
    /// By a hash of the host.
    pub(crate) hosts: Rates<u64>,
    pub(crate) hasher: RandomState,
    /// By the group of the client.
    pub(crate) clients: Rates<IpAddr>,
}

impl Hub {
    /// Starts a hub on a separate thread, with the topics, subscriptions and unfinished deliveries
    /// of its store. Leases of subscriptions and pauses are measured by the clock of the store.
    ///
    /// # Errors
    /// When the hub's URL cannot be one, or the store fails.
    pub fn start(
        options: HubOptions,
        store: Arc<dyn HubStore>,
        payloads: Arc<dyn Payloads>,
    ) -> Result<Self, HubError> {
        abreast_websub::check_topic(&options.url).map_err(|error| HubError::Url {
            url: options.url.clone(),
            reason: error.to_string(),
        })?;
        let (sender, receiver) = sync_channel(1);
        let clock = store.clock();
        let run = move || run(options, store, payloads, clock, &sender);
        let thread = std::thread::Builder::new()
            .name("abreast-hub".to_owned())
            .spawn(run)
            .map_err(HubError::Thread)?;
        match receiver.recv() {
            Ok(Ok(inner)) => {
                Ok(Self(Arc::new(Running { inner, thread: Mutex::new(Some(thread)) })))
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(HubError::Thread(std::io::Error::other("it ended at once"))),
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0.inner
    }

    /// The store of the hub's topics and targets.
    pub fn store(&self) -> &Arc<dyn HubStore> {
        &self.0.inner.engine.store
    }

    /// The options with which the hub was started.
    pub fn options(&self) -> &HubOptions {
        &self.0.inner.options
    }

    /// Answers a POST at the hub's URL. Works on any runtime.
    pub async fn handle(&self, request: HubRequest) -> HubAnswer {
        self.0.inner.handle(request).await
    }

    /// Answers a POST at the address for subscriptions to a topic by HTTP callback [rs-0.1 §5.2.2].
    /// Works on any runtime.
    pub async fn call_back(
        &self,
        topic_url: &str,
        content_type: &str,
        body: &[u8],
        client: Client,
    ) -> HubAnswer {
        self.0.inner.call_back(topic_url, content_type, body, client).await
    }

    /// The topic with this URL, created if it does not exist. Only parts of this process may
    /// publish in it, by [`abreast_core::TopicLog`]. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn own_topic(&self, url: &str) -> Result<TopicId, LogError> {
        self.0.inner.engine.open_topic(url, true)
    }

    /// Reports that a notification, which another component recorded, is durable in a topic's log.
    /// Cheap, and callable from any thread.
    pub fn published(&self, topic: TopicId) {
        self.0.inner.engine.published(topic, None);
    }

    /// A topic's last notification and its bytes; `None` if the topic does not exist or is empty.
    /// Blocks.
    ///
    /// # Errors
    /// The store, or the renderer of the bytes, failed.
    pub fn latest(&self, topic_url: &str) -> Result<Option<(Notification, Bytes)>, LogError> {
        let Some(topic) = self.0.inner.known(topic_url) else { return Ok(None) };
        let Some(last) = self.store().last(topic)? else { return Ok(None) };
        let body = self.0.inner.engine.cache.body(topic_url, &last)?;
        Ok(Some((last, body)))
    }

    /// A topic's notifications after an offset, or all new ones; `None` if the topic does not
    /// exist.
    ///
    /// # Errors
    /// When the store fails.
    pub fn events(
        &self,
        topic_url: &str,
        after: Option<Offset>,
    ) -> Result<Option<Events>, LogError> {
        let engine = &self.0.inner.engine;
        let Some(topic) = self.0.inner.known(topic_url) else { return Ok(None) };
        let heard = engine.listen(topic);
        let head = self.store().head(topic)?;
        Ok(Some(Events {
            store: Arc::clone(&engine.store),
            cache: Arc::clone(&engine.cache),
            topic,
            url: topic_url.into(),
            // A client that requests a future offset has followed another log.
            after: after.map_or(head, |after| after.min(head)),
            heard,
            page: VecDeque::new(),
        }))
    }

    /// Totals since the start, and the present activity.
    pub fn metrics(&self) -> HubMetrics {
        let (inner, standing) = (&self.0.inner, self.0.inner.engine.standing());
        let held = inner.engine.held.status();
        HubMetrics {
            targets: standing.targets as u64,
            // The internal log is a topic, and not known while all topics are read again.
            topics: (standing.topics as u64).saturating_sub(1),
            in_flight: standing.load.flying as u64,
            slow: standing.load.slow as u64,
            ready: standing.load.ready as u64,
            waiting: standing.waiting as u64,
            broken_origins: standing.load.broken as u64,
            unverified: inner.verifier.len() as u64,
            failing_hubs: standing.failing_hubs as u64,
            nodes: held.nodes as u64,
            shards: held.shards as u64,
            since_renewal: held.since_renewal,
            ..inner.counters.totals()
        }
    }

    /// Checks that this node can deliver: the last renewal of its lease succeeded, and is not older
    /// than half of the lease. Reads memory only; a hub without other nodes always can.
    ///
    /// # Errors
    /// The lease was not renewed in time, with the reason.
    pub fn check_lease(&self) -> Result<(), String> {
        self.0.inner.engine.held.check_lease()
    }

    /// Starts no more deliveries, waits for running ones for a short time and records all cursors.
    /// Blocks.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Running {
    fn stop(&self) {
        self.inner.engine.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the hub's thread panicked");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("url", &self.options().url).finish_non_exhaustive()
    }
}

impl Inner {
    /// Reads the store. If several nodes share it, also starts the threads of this node.
    fn start(
        options: HubOptions,
        store: Arc<dyn HubStore>,
        payloads: Arc<dyn Payloads>,
        clock: Arc<dyn Clock>,
        runtime: Handle,
    ) -> Result<(Self, Option<Node>), HubError> {
        // All later changes are read from here on.
        let revision = store.nodes().map(HubNodes::revision).transpose()?;
        let inner = Self::new(options, store, payloads, clock, runtime)?;
        let node = match revision {
            Some(revision) => {
                let (engine, verifier) = (Arc::clone(&inner.engine), Arc::clone(&inner.verifier));
                let fetcher = Arc::clone(&inner.fetcher);
                Some(Node::start(engine, verifier, fetcher, revision)?)
            }
            None => None,
        };
        Ok((inner, node))
    }

    fn new(
        options: HubOptions,
        store: Arc<dyn HubStore>,
        payloads: Arc<dyn Payloads>,
        clock: Arc<dyn Clock>,
        runtime: Handle,
    ) -> Result<Self, HubError> {
        let options = Arc::new(options);
        let of_callbacks = SenderOptions {
            connect_timeout: options.sending.connect,
            timeout: options.sending.total,
            kept_per_origin: options.lanes.per_host,
            // The hub has two senders.
            lookups: BLOCKING_THREADS / 4,
            public_only: !options.private_callbacks,
            extra_roots: options.extra_roots.clone(),
            ..SenderOptions::default()
        };
        let of_topics =
            SenderOptions { public_only: !options.private_topics, ..of_callbacks.clone() };
        let sender = Sender::new(of_callbacks)?;
        let counters = Arc::new(Counters::default());
        let cache = PayloadCache::new(
            Arc::clone(&store),
            payloads,
            options.url.clone(),
            options.memory_bytes,
        );
        let engine = Engine::new(
            Arc::clone(&options),
            store,
            clock,
            Arc::new(cache),
            Arc::clone(&counters),
            sender.clone(),
        )?;
        let verification = &options.verification;
        let rates = AllRates {
            hosts: Rates::new(verification.host_burst, verification.host_rate),
            hasher: RandomState::new(),
            clients: Rates::new(verification.client_burst, verification.client_rate),
        };
        Ok(Self {
            verifier: Verifier::new(Arc::clone(&engine), sender.clone())?,
            fetcher: Fetcher::new(Arc::clone(&engine), Sender::new(of_topics)?)?,
            accepting: Semaphore::new(
                (options.accepting_bytes / ROOM_UNIT).clamp(1, Semaphore::MAX_PERMITS),
            ),
            full: Arc::default(),
            rates: Mutex::new(rates),
            options,
            engine,
            counters,
            sender,
            runtime,
        })
    }

    /// The topic with this URL, if it is known; not the hub's internal log.
    pub(crate) fn known(&self, url: &str) -> Option<TopicId> {
        self.engine.topic(url).filter(|topic| *topic != self.fetcher.topic)
    }

    /// Whether clients may subscribe to a topic here.
    pub(crate) fn serves(&self, topic: &str) -> bool {
        self.options.open || self.options.allows(topic) || self.known(topic).is_some()
    }

    /// Reserves memory for a request that will be recorded, or returns the answer that it is
    /// exhausted; does not wait.
    pub(crate) fn room(&self, bytes: usize) -> Result<SemaphorePermit<'_>, HubAnswer> {
        let all = (self.options.accepting_bytes / ROOM_UNIT).max(1);
        let units = bytes.div_ceil(ROOM_UNIT).clamp(1, all);
        let room = self.accepting.try_acquire_many(u32::try_from(units).unwrap_or(u32::MAX));
        room.map_err(|_| HubAnswer::later(503, 1, "too much waits to be recorded\n"))
    }

    pub(crate) fn lock_rates(&self) -> MutexGuard<'_, AllRates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hub's thread.
fn run(
    options: HubOptions,
    store: Arc<dyn HubStore>,
    payloads: Arc<dyn Payloads>,
    clock: Arc<dyn Clock>,
    started: &SyncSender<Result<Arc<Inner>, HubError>>,
) {
    let runtime =
        Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return drop(started.send(Err(HubError::Thread(error)))),
    };
    let (inner, node) =
        match Inner::start(options, store, payloads, clock, runtime.handle().clone()) {
            Ok((inner, node)) => (Arc::new(inner), node),
            Err(error) => return drop(started.send(Err(error))),
        };
    runtime.spawn(worker::run(Arc::clone(&inner.verifier)));
    runtime.spawn(worker::run(Arc::clone(&inner.fetcher)));
    runtime.spawn(leases::sweep(Arc::clone(&inner.engine)));
    runtime.spawn(retention::sweep(Arc::clone(&inner.engine), Arc::clone(&inner.full)));
    let sender = inner.sender.clone();
    runtime.spawn(async move {
        loop {
            tokio::time::sleep(TIDY).await;
            sender.close_expired();
        }
    });
    let engine = Arc::clone(&inner.engine);
    let _ = started.send(Ok(inner));
    runtime.block_on(engine.run());
    runtime.shutdown_timeout(FAREWELL);
    // No delivery is running any more.
    if let Some(node) = node {
        node.leave();
    }
}
