//! One origin as a client sees it, with its open connections.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::uri::Authority;
use tokio::sync::Notify;

use crate::address::error::Error;
use crate::address::origin::Origin;
use crate::address::secret::Authorization;
use crate::transport::channel::{Channel, Opened};
use crate::transport::connect::connect;
use crate::transport::connection::Connection;
use crate::transport::http2::{Http2Connection, Http2Exchange};
use crate::transport::pipeline::{PIPELINE_MAX, Pipeline, PipelinedExchange};
use crate::transport::shared::{HostState, Place, Protocol, Shared};

/// An origin as this client uses it.
pub(crate) struct Host {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: Arc<HostState>,
    pub(crate) origin: Origin,
    /// The HTTP proxy to which whole URLs are sent, for an http server behind one.
    pub(crate) forwards: Option<Forwards>,
    /// Whether a missing `https` in the address needs no further test: the server was reached with
    /// TLS, or is known to answer without it.
    pub(crate) tls_is_known: AtomicBool,
    #[expect(clippy::vec_box, reason = "a connection is boxed once and moved many times")]
    idle: Mutex<Vec<Box<Connection>>>,
    /// Connections of HTTP/1.1 with requests in a row.
    pipelines: Mutex<Vec<Arc<Pipeline>>>,
    /// A connection takes another request in a row.
    room: Notify,
    /// Locked while a request waits for the first connection with requests in a row.
    starting: tokio::sync::Mutex<()>,
    /// The connection of HTTP/2 that the requests share.
    multiplexed: Mutex<Option<Arc<Http2Connection>>>,
    /// Locked while a connection is made that others may share; whether the last one failed.
    connecting: tokio::sync::Mutex<bool>,
}

/// The connections that a request may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A connection on which other requests may precede.
    InRow,
    /// Any connection; by HTTP/1.1, for this request alone.
    Any,
    /// A connection that was not used before.
    New,
}

/// Headers for a proxy that forwards requests.
pub(crate) struct Forwards {
    pub(crate) authority: Authority,
    pub(crate) authorization: Option<Authorization>,
}

impl Host {
    pub(crate) fn new(
        shared: Arc<Shared>,
        state: Arc<HostState>,
        origin: Origin,
        forwards: Option<Forwards>,
    ) -> Self {
        let tls_is_known = AtomicBool::new(origin.https);
        Self {
            shared,
            state,
            origin,
            forwards,
            tls_is_known,
            idle: Mutex::default(),
            pipelines: Mutex::default(),
            room: Notify::new(),
            starting: tokio::sync::Mutex::default(),
            multiplexed: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }
    }

    /// A new connection, or a part of a connection that another request has made meanwhile.
    pub(crate) async fn open(
        &self,
        place: &mut Place,
        url: &str,
        public_only: bool,
    ) -> Result<Channel, Error> {
        let (shared, origin) = (&self.shared, &self.origin);
        let mut may_be_http2 =
            origin.https && shared.options.http2 && self.state.protocol() != Protocol::Http1;
        let mut connecting = None;
        if may_be_http2 {
            let failed = self.connecting.lock().await;
            if let Some(channel) = self.multiplexed() {
                return Ok(channel);
            }
            may_be_http2 = self.state.protocol() != Protocol::Http1;
            // After a failure, requests do not wait for the time limits of earlier requests.
            connecting = Some(failed).filter(|failed| may_be_http2 && !**failed);
        }
        if !may_be_http2 {
            place.alone(&self.state).await;
        }
        let opened = connect(shared, origin, url, public_only, may_be_http2).await;
        if let Some(failed) = &mut connecting {
            **failed = opened.is_err();
        } else if may_be_http2 && opened.is_ok() {
            *self.connecting.lock().await = false;
        }
        match opened? {
            Opened::Http1(connection) => {
                if may_be_http2 {
                    self.state.set_protocol(Protocol::Http1);
                    drop(connecting);
                    place.alone(&self.state).await;
                }
                Ok(Channel::Http1(connection))
            }
            Opened::Http2(connection) => {
                self.state.set_protocol(Protocol::Http2);
                self.shared.found_taking_many();
                *self.shared_connection() = Some(Arc::clone(&connection));
                Ok(Channel::Http2(Box::new(Http2Exchange::new(connection))))
            }
        }
    }

    /// Closes connections that were idle for longer than `keep_alive`.
    pub(crate) fn close_idle(&self, keep_alive: Duration) {
        self.idle().retain(|connection| connection.idle_since.elapsed() < keep_alive);
        self.pipelines().retain(|pipeline| pipeline.idle().is_none_or(|idle| idle < keep_alive));
        self.shared_connection().take_if(|connection| is_expired(connection, keep_alive));
    }

    /// A part of a shared connection, or a connection that still works; `None` if a new connection
    /// must be made.
    pub(crate) async fn take(&self, place: &mut Place, wanted: Wanted) -> Option<Channel> {
        if wanted == Wanted::New {
            return None;
        }
        if let Some(channel) = self.multiplexed() {
            return Some(channel);
        }
        let is_in_row = wanted == Wanted::InRow && self.state.pipelines();
        self.close_broken();
        if is_in_row && let Some(channel) = self.join_row(place).await {
            return Some(channel);
        }
        let may_be_http2 = self.origin.https
            && self.shared.options.http2
            && self.state.protocol() != Protocol::Http1;
        if !may_be_http2 {
            // A connection may become idle meanwhile.
            place.alone(&self.state).await;
        }
        if is_in_row && let Some(channel) = self.begin_row(place) {
            return Some(channel);
        }
        if let Some(connection) = self.take_idle() {
            return Some(Channel::Http1(connection));
        }
        let (stream, meter) = Arc::into_inner(self.take_idle_pipeline()?)?.into_connection()?;
        let connection = Connection::on(stream, meter, &self.shared.options).await.ok()?;
        Some(Channel::Http1(Box::new(connection)))
    }

    /// A turn on a connection with requests in a row; `None` if the request has got the place of a
    /// connection, or can have it next.
    async fn join_row(&self, place: &mut Place) -> Option<Channel> {
        while place.alone.is_none() && self.state.pipelines() {
            if self.has_idle() {
                place.alone = self.state.try_alone();
            }
            if place.alone.is_some() {
                return None;
            }
            if !self.state.is_awaited()
                && let Some(exchange) = self.join_pipeline()
            {
                return Some(Channel::Pipelined(Box::new(exchange)));
            }
            // Without a connection in use, one request of this client stops new requests on the
            // connections of other clients until it has one.
            if !self.pipelines().iter().any(|it| it.in_flight() > Some(0))
                && let Ok(_starting) = self.starting.try_lock()
            {
                place.alone(&self.state).await;
                return None;
            }
            tokio::select! {
                biased;
                alone = self.state.alone() => place.alone = Some(alone),
                () = self.room.notified() => {}
            }
        }
        None
    }

    /// The first turn on an idle connection whose server answers regularly.
    fn begin_row(&self, place: &mut Place) -> Option<Channel> {
        let alone = place.alone.take()?;
        let pipeline = self.take_idle_pipeline().or_else(|| {
            let connection = self.take_idle()?;
            if !connection.is_regular() {
                self.idle().push(connection);
                return None;
            }
            let (stream, meter) = connection.into_stream()?;
            let pipeline = Pipeline::new(stream, meter);
            // The server may have closed the connection meanwhile.
            pipeline.is_quiet().then(|| {
                self.found_pipelining();
                Arc::new(pipeline)
            })
        });
        let Some(pipeline) = pipeline else {
            place.alone = Some(alone);
            return None;
        };
        self.pipelines().push(Arc::clone(&pipeline));
        Some(Channel::Pipelined(Box::new(pipeline.begin(alone))))
    }

    /// Closes connections with requests in a row that have failed, and idle ones if no more requests
    /// are sent in a row: their next bytes may be the answer to another request.
    fn close_broken(&self) {
        let is_used = self.state.pipelines();
        let is_open = |count: usize| is_used || count > 0;
        self.pipelines().retain(|pipeline| pipeline.in_flight().is_some_and(is_open));
    }

    /// Allows more requests in flight, since the server answers requests in a row.
    fn found_pipelining(&self) {
        let connections = self.shared.options.connections_per_host.max(1);
        if self.state.take_more(connections * (PIPELINE_MAX - 1)) {
            self.shared.found_taking_many();
        }
    }

    /// A turn on the connection with the fewest requests in a row, if it takes another one.
    fn join_pipeline(&self) -> Option<PipelinedExchange> {
        let pipelines = self.pipelines();
        let busy = pipelines.iter().filter_map(|pipeline| Some((pipeline.in_flight()?, pipeline)));
        busy.filter(|(count, _)| *count > 0).min_by_key(|(count, _)| *count)?.1.join()
    }

    /// A connection for requests in a row that has none, and still works.
    fn take_idle_pipeline(&self) -> Option<Arc<Pipeline>> {
        let mut pipelines = self.pipelines();
        while let Some(at) = pipelines.iter().position(|it| it.in_flight() == Some(0)) {
            let pipeline = pipelines.swap_remove(at);
            let is_young = |idle: Duration| idle < self.shared.options.keep_alive;
            if pipeline.idle().is_some_and(is_young) && pipeline.is_quiet() {
                return Some(pipeline);
            }
        }
        None
    }

    /// Whether a connection waits for a request.
    fn has_idle(&self) -> bool {
        !self.idle().is_empty() || self.pipelines().iter().any(|it| it.in_flight() == Some(0))
    }

    /// An idle connection that still works, the youngest first.
    fn take_idle(&self) -> Option<Box<Connection>> {
        let mut idle = self.idle();
        while let Some(connection) = idle.pop() {
            if connection.idle_since.elapsed() < self.shared.options.keep_alive
                && connection.is_open()
            {
                return Some(connection);
            }
        }
        None
    }

    /// A part of the shared connection, if there is one that works.
    fn multiplexed(&self) -> Option<Channel> {
        let mut shared = self.shared_connection();
        let keep_alive = self.shared.options.keep_alive;
        shared.take_if(|connection| !connection.is_open() || is_expired(connection, keep_alive));
        let connection = shared.as_ref()?;
        Some(Channel::Http2(Box::new(Http2Exchange::new(Arc::clone(connection)))))
    }

    /// Starts no more requests on a shared connection that has failed.
    pub(crate) fn forget(&self, channel: &Channel) {
        if let Channel::Http2(exchange) = channel {
            self.shared_connection()
                .take_if(|connection| Arc::ptr_eq(connection, exchange.connection()));
        }
    }

    /// Makes a connection available for the next request if it can serve one.
    pub(crate) fn give_back(&self, channel: Channel) {
        let mut connection = match channel {
            Channel::Http1(connection) => connection,
            Channel::Http2(exchange) => return exchange.connection().rest(),
            Channel::Pipelined(exchange) => {
                exchange.finish();
                return self.room.notify_one();
            }
        };
        if !connection.settle() {
            return;
        }
        connection.idle_since = Instant::now();
        let mut idle = self.idle();
        if idle.len() < self.shared.options.connections_per_host.max(1) {
            idle.push(connection);
        }
    }

    #[expect(clippy::vec_box, reason = "a connection is boxed once and moved many times")]
    fn idle(&self) -> MutexGuard<'_, Vec<Box<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pipelines(&self) -> MutexGuard<'_, Vec<Arc<Pipeline>>> {
        self.pipelines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared_connection(&self) -> MutexGuard<'_, Option<Arc<Http2Connection>>> {
        self.multiplexed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether no request has used a shared connection for this time.
fn is_expired(connection: &Arc<Http2Connection>, keep_alive: Duration) -> bool {
    Arc::strong_count(connection) == 1 && connection.idle() >= keep_alive
}
