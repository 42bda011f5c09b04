//! The server: start, requests and stop.
//!
//! Shutdown, in this order: readiness is withdrawn, no new connection is accepted, requests in
//! flight are finished (at most [`ServerOptions::stop_timeout`]), connections are closed. The
//! caller then stops the watches and closes the store.

use crate::admin;
use crate::api;
use crate::connection::client::Peer;
use crate::connection::origin_form::{await_body, to_origin_form};
use crate::connection::prefix::without_prefix;
use crate::connection::stream::ClientStream;
use crate::limits::clients::{ClientLimits, ClientRequest};
use crate::message::body::Guarded;
use crate::message::present::{Asked, present};
use crate::message::respond::{Answer, is_passing, out_of_reach, problem};
use crate::observe::access::{Entry, REQUEST_ID};
use crate::observe::followers::Following;
use crate::routes::document;
use crate::run::dispatch::answer;
use crate::run::options::ServerOptions;
use crate::run::shared::{Counters, Part, Shared};
use crate::site::current::CurrentSite;
use crate::site::heads::Heads;
use abreast_core::{Clock as _, SystemClock};
use abreast_net::{
    ConnectionSlot, ConnectionSlots, Http2Limits, InFlight, ServerCertificate, ServerStream, TRACE,
    accept_until, begins_http2, continue_trace, may_be_given_up, serve_http2, serve_until,
};
use http::header::{ACCEPT, CONNECTION, CONTENT_TYPE, RETRY_AFTER, TRANSFER_ENCODING, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tracing::Instrument as _;
use tracing::field::{Empty, debug};

/// Most bytes of a request's line and headers together, and of an answer in memory; a request has
/// at most 100 headers.
const MAX_HEAD: usize = 64 * 1024;

/// Most requests in flight on a connection of HTTP/2: as many as [rfc9113 §6.5.2] recommends, unless a
/// client may have fewer.
const HTTP2_REQUESTS_MAX: usize = 100;
/// Part of all connections that the requests of a connection of HTTP/2 may take.
const HTTP2_SHARE: usize = 8;

/// How often the files of the certificate are checked.
const RENEWAL: Duration = Duration::from_secs(30);

/// The server cannot listen on its address.
#[derive(Debug, Error)]
#[error("cannot listen on {address}")]
pub struct ServerError {
    address: SocketAddr,
    #[source]
    cause: io::Error,
}

/// A server that listens, and answers once it runs.
pub struct Server {
    listener: TcpListener,
    options: ServerOptions,
}

impl Server {
    /// Listens on an address; with port 0, the system chooses a port.
    ///
    /// # Errors
    /// When the address is in use or not allowed.
    pub async fn bind(address: SocketAddr, options: ServerOptions) -> Result<Self, ServerError> {
        let listener =
            TcpListener::bind(address).await.map_err(|cause| ServerError { address, cause })?;
        Ok(Self { listener, options })
    }

    /// Answers on a socket that already listens, such as one that a service manager passes on.
    /// Call it within a runtime of tokio.
    ///
    /// # Errors
    /// When the socket cannot be used without blocking.
    pub fn on(listener: std::net::TcpListener, options: ServerOptions) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener: TcpListener::from_std(listener)?, options })
    }

    /// The address on which the server listens.
    ///
    /// # Errors
    /// The system does not report the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` becomes true, then finishes the requests in flight. Each request uses the
    /// site that is current when it begins; all sites have the same log.
    pub async fn run(self, sites: Arc<CurrentSite>, stop: watch::Receiver<bool>) {
        let site = sites.now();
        let heads = match Heads::start(Arc::clone(site.publisher.log())) {
            Ok(heads) => heads,
            Err(error) => {
                tracing::error!("cannot start the thread that waits for changes: {error}");
                return;
            }
        };
        let stop_timeout = self.options.stop_timeout;
        // Uploads and waiting clients must not use all connections.
        site.memory.fit(self.options.connections);
        if let Some(api) = &site.api {
            api.fit(self.options.connections);
        }
        drop(site);
        let connection_slots = ConnectionSlots::new(self.options.connections);
        if let Some(certificate) = &self.options.certificate {
            tokio::spawn(renew(Arc::clone(certificate), stop.clone()));
        }
        let clients =
            ClientLimits::new(self.options.requests_per_client, &self.options.known_clients);
        let shared = Arc::new(Shared {
            sites,
            clients,
            options: self.options,
            stopping: AtomicBool::new(false),
            stop: stop.clone(),
            counters: Counters::new(),
            single_flight: document::SingleFlight::default(),
            heads,
        });
        let serve =
            |stream, client, place| serve(stream, client, Arc::clone(&shared), stop.clone(), place);
        let ((), mut connections) =
            accept_until(&self.listener, &connection_slots, stopped(stop.clone()), serve).await;
        shared.stopping.store(true, Ordering::Relaxed);
        drop(self.listener);
        let finished = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(stop_timeout, finished).await.is_err() {
            tracing::warn!("some requests took too long to finish; closing their connections");
            connections.shutdown().await;
        }
    }
}

/// Reads a certificate again when its files change, until the server stops.
async fn renew(certificate: Arc<ServerCertificate>, stop: watch::Receiver<bool>) {
    let mut stopped = std::pin::pin!(stopped(stop));
    while tokio::time::timeout(RENEWAL, stopped.as_mut()).await.is_err() {
        let certificate = Arc::clone(&certificate);
        let _ = tokio::task::spawn_blocking(move || reread(&certificate)).await;
    }
}

/// Reads a certificate again if its files changed, and logs the result.
pub fn reread(certificate: &ServerCertificate) {
    match certificate.reread() {
        Ok(true) => tracing::info!("the new certificate is used for new connections"),
        Ok(false) => {}
        Err(error) => tracing::error!("the former certificate is used: {error}"),
    }
}

/// Waits until the server must stop, or the sender is dropped.
async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn serve(
    stream: TcpStream,
    peer: IpAddr,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
    place: ConnectionSlot,
) {
    let peer = Peer::new(peer, stream.local_addr().ok().map(|own| own.ip()));
    let service = service_fn(|request| {
        let (shared, mut in_flight) = (Arc::clone(&shared), place.asked());
        async move {
            let has_place = in_flight.take_place().await;
            handle(&shared, request, peer, (in_flight, has_place)).await
        }
    });
    let options = &shared.options;
    let opening = tokio::time::timeout(options.header_timeout, open(stream, options));
    let opened = tokio::select! {
        biased;
        opened = opening => opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
        _ = place.leave() => return,
        () = stopped(stop.clone()) => return,
    };
    let (stream, is_http2) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            tracing::debug!("a connection ended before the first request: {error}");
            return;
        }
    };
    if is_http2 {
        let stream = ClientStream::http2(stream, options.stall_timeout, place.writes());
        let limits = http2_limits(options);
        serve_http2(TokioIo::new(stream), service, limits, &place, stopped(stop)).await;
        return;
    }
    let stream = ClientStream::http1(stream, options.stall_timeout, place.writes());
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    serve_until(connection, &place, stopped(stop)).await;
}

/// Answers the handshake of TLS, if the server has a certificate. Returns the stream, and whether the
/// client speaks HTTP/2.
async fn open(stream: TcpStream, options: &ServerOptions) -> io::Result<(ServerStream, bool)> {
    if let Some(certificate) = &options.certificate {
        let stream = certificate.accept(stream, options.http2).await?;
        let is_http2 = stream.chose_http2();
        return Ok((stream, is_http2));
    }
    let is_http2 = options.http2 && begins_http2(&stream).await?;
    Ok((ServerStream::Plain(stream), is_http2))
}

/// The limits of a connection of HTTP/2. A client with one connection is not refused because of its own
/// requests, and cannot take all places.
fn http2_limits(options: &ServerOptions) -> Http2Limits {
    let of_client = match options.requests_per_client {
        0 => HTTP2_REQUESTS_MAX,
        most => most.min(HTTP2_REQUESTS_MAX),
    };
    Http2Limits {
        requests: of_client.min(options.connections / HTTP2_SHARE).max(1) as u32,
        header_bytes: MAX_HEAD as u32,
        idle: options.header_timeout,
        stall: options.stall_timeout,
    }
}

/// Answers a request. All requests are counted and logged here.
async fn handle(
    shared: &Arc<Shared>,
    mut request: Request<Incoming>,
    peer: Peer,
    (in_flight, has_place): (InFlight, bool),
) -> io::Result<Response<Guarded<(InFlight, ClientRequest)>>> {
    let begun = Instant::now();
    to_origin_form(&mut request);
    await_body(&mut request, shared.options.header_timeout).await;
    let site = &shared.sites.now();
    let base = site.publisher.urls().base();
    let proxies = shared.sites.trusted_proxies();
    let proxies = proxies.as_ref().unwrap_or(&shared.options.trusted_proxies);
    let client = proxies.client(peer, request.headers());
    let mut entry = shared.sites.access_log.now().map(|_| {
        let (address, is_trusted) = (client.nearest(), proxies.trusts_peer(peer));
        Box::new(Entry::new(&shared.sites.access_log, &request, address, is_trusted))
    });
    let token = |secret: &str| Some(site.api.as_ref()?.tokens.find(secret)?.name);
    let known = shared.clients.known(base, request.method(), request.headers(), token);
    if let Some((entry, known)) = entry.as_mut().zip(known) {
        entry.set_user(shared.clients.name(known));
    }
    if shared.options.strip_prefix
        && let Some(uri) = without_prefix(request.uri(), base)
    {
        *request.uri_mut() = uri;
    }
    // Read the needed parts of the request before it is consumed.
    let accepted: HeaderMap =
        request.headers().get_all(ACCEPT).iter().map(|value| (ACCEPT, value.clone())).collect();
    // Only the parser knows where this body ends, so line endings after it cannot be checked.
    let is_last = request.headers().contains_key(TRANSFER_ENCODING);
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let version = request.version();
    let program = request.headers().get(USER_AGENT).cloned();
    let span = tracing::debug_span!(
        target: TRACE,
        "answer",
        otel.kind = "server",
        otel.name = %method,
        otel.status_code = Empty,
        http.request.method = %method,
        url.path = uri.path(),
        http.route = Empty,
        http.response.status_code = Empty,
    );
    if proxies.trusts_peer(peer) {
        continue_trace(&span, request.headers());
    }
    let is_waiting = api::is_path(uri.path()) && api::waits(&uri);
    // Requests that wait have a limit of their own.
    let counted = if is_waiting {
        may_be_given_up();
        Some(ClientRequest::uncounted())
    } else {
        shared.clients.enter(&client, known)
    };
    let (part, answer, counted) = match counted {
        _ if !has_place => (Part::Other, full(), ClientRequest::uncounted()),
        Some(counted) => {
            let answer = answer(shared, site, request, client).instrument(span.clone());
            let (part, answer) = match answer.await {
                Err(error) if is_passing(&error) => (Part::Other, out_of_reach(&error)),
                Err(error) => {
                    tracing::error!("cannot answer a request: {error}");
                    let detail = "the request failed; the server's log has the reason";
                    (Part::Other, problem(StatusCode::INTERNAL_SERVER_ERROR, detail))
                }
                Ok(answer) => answer,
            };
            (part, answer, counted)
        }
        None => (Part::Other, too_many(&request), ClientRequest::uncounted()),
    };
    // Streams of events have a limit of their own, too.
    let counted = if is_stream(&answer) { ClientRequest::uncounted() } else { counted };
    let asked = Asked { path: uri.path(), headers: &accepted, admin: admin::root_of(uri.path()) };
    let mut answer = present(answer, asked, &site.publisher).instrument(span.clone()).await;
    if is_last {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if version == Version::HTTP_2 {
        // A request whose body is not read ends alone.
        answer.headers_mut().remove(CONNECTION);
    }
    let status = answer.status();
    shared.counters.count(status, part, begun.elapsed());
    span.record("http.route", debug(part)).record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    if let Some(following) = answer.extensions_mut().remove::<Following>()
        && matches!(status, StatusCode::OK | StatusCode::NOT_MODIFIED)
        && method == Method::GET
    {
        let name = known.and_then(|known| shared.clients.name(known)).map(str::to_owned);
        let client = name.unwrap_or_else(|| client.to_string());
        site.followers.record(following, client, program.as_ref(), SystemClock.now());
    }
    if let Some(entry) = &mut entry {
        entry.answered(status);
        if let Some(id) = entry.id() {
            answer.headers_mut().insert(REQUEST_ID, id);
        }
    }
    tracing::debug!(%client, %method, path = uri.path(), status = status.as_u16());
    Ok(answer.map(|body| Guarded::new(body, entry, (in_flight, counted))))
}

/// The answer to a client that has as many requests in flight as it may have [rfc6585 §4].
fn too_many(request: &Request<Incoming>) -> Answer {
    let mut answer = problem(
        StatusCode::TOO_MANY_REQUESTS,
        "this client has too many requests in flight: repeat it when another one is complete",
    );
    let headers = answer.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    // The body of the request is not read.
    if !request.body().is_end_stream() {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// The answer to a request of HTTP/2 for which no place is free [rfc9110 §15.6.4].
fn full() -> Answer {
    let detail = "the server has too many requests in flight: repeat the request in a second";
    let mut answer = problem(StatusCode::SERVICE_UNAVAILABLE, detail);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// Whether an answer is an endless stream of events.
fn is_stream(answer: &Answer) -> bool {
    let media_type = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    media_type.is_some_and(|media_type| media_type.starts_with(b"text/event-stream"))
}
