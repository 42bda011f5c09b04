//! The server: start, requests and stop.
//!
//! Shutdown, in this order: readiness is withdrawn, no new connection is accepted, requests in
//! flight are finished (at most [`ServerOptions::stop_timeout`]), connections are closed. The
//! caller then stops the watches and closes the store.

use crate::admin;
use crate::api;
use crate::connection::client::{Peer, TrustedProxies};
use crate::connection::prefix::without_prefix;
use crate::connection::stream::ClientStream;
use crate::limits::clients::{ClientLimits, ClientRequest, KnownClient, REQUESTS_PER_CLIENT};
use crate::message::body::{Guarded, ResponseBody};
use crate::message::conditional::may_redirect;
use crate::message::present::{Asked, present};
use crate::message::respond::{
    Answer, is_passing, out_of_reach, problem, see_other, text, try_later,
};
use crate::observe::access::{Entry, REQUEST_ID};
use crate::observe::followers::Following;
use crate::routes::{
    callback, document, entity, file, former, health, hub, memento, timegate, timemap, topic,
};
use crate::run::route::{Route, role_of, route};
use crate::site::current::CurrentSite;
use crate::site::heads::Heads;
use crate::site::resource;
use crate::site::served::Site;
use abreast_core::{Clock as _, NodeRole, NodeRoles, SystemClock};
use abreast_hub::Client;
use abreast_net::{
    ConnectionSlot, ConnectionSlots, InFlight, KeyDirectory, ServerCertificate, ServerStream,
    TRACE, accept_until, continue_trace, serve_until,
};
use abreast_source::projection::Topic;
use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_METHOD, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE,
    HOST, ORIGIN, RETRY_AFTER, TRANSFER_ENCODING, USER_AGENT, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics::{Counter, Histogram, counter, histogram};
use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tracing::Instrument as _;
use tracing::field::{Empty, debug};

/// Most bytes of a request's line and headers together, and of an answer in memory; a request has
/// at most 100 headers.
const MAX_HEAD: usize = 64 * 1024;
/// Most bytes of a request target: twice the longest published URI.
const MAX_TARGET: usize = 16 * 1024;

/// How long verifiers may keep the keys that sign requests: so long a removed key remains valid.
const KEYS_MAY_BE_CACHED: &str = "max-age=3600";

/// How often the files of the certificate are checked.
const RENEWAL: Duration = Duration::from_secs(30);

/// Limits of a server, and its trusted proxies.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Most connections at a time; if there are more, the oldest idle connection of the client with
    /// the most connections is closed.
    pub connections: usize,
    /// Time limit for a request's header, and for an idle connection.
    pub header_timeout: Duration,
    /// Time without progress after which the connection of a client that does not read its answer
    /// is closed.
    pub stall_timeout: Duration,
    /// Time limit for requests in flight when the server stops.
    pub stop_timeout: Duration,
    /// Proxies whose reports of client addresses are trusted. Default: none.
    pub trusted_proxies: TrustedProxies,
    /// The certificate, if the server speaks TLS. Its files are read again when they change.
    pub certificate: Option<Arc<ServerCertificate>>,
    /// Whether the paths of requests include the path of the public URL, which the server then
    /// removes. Default: no, because proxies usually remove it.
    pub strip_prefix: bool,
    /// Public keys that sign requests of copies, served at [`KeyDirectory::PATH`]. Default: none.
    pub keys: Option<KeyDirectory>,
    /// Most requests in flight of a client that is not known, 0 for no limit. Default 64. Requests from
    /// this machine, and through a proxy that does not report the address of its client, are not limited.
    pub requests_per_client: usize,
    /// Clients with a limit of their own. Default: none.
    pub known_clients: Vec<KnownClient>,
    /// Length in bytes from which files in an object store are answered by a redirect to a URL of the store
    /// that is valid for 10 minutes. Default: never.
    pub redirect_from: Option<u64>,
    /// The roles of this node: requests for another role are refused with 421. Default: all.
    pub roles: NodeRoles,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            connections: 2_048,
            header_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(8),
            trusted_proxies: TrustedProxies::default(),
            certificate: None,
            strip_prefix: false,
            keys: None,
            requests_per_client: REQUESTS_PER_CLIENT,
            known_clients: Vec::new(),
            redirect_from: None,
            roles: NodeRoles::default(),
        }
    }
}

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

struct Shared {
    sites: Arc<CurrentSite>,
    clients: ClientLimits,
    options: ServerOptions,
    stopping: AtomicBool,
    /// Ends event streams, which would not end by themselves.
    stop: watch::Receiver<bool>,
    counters: Counters,
    /// Documents that are being made.
    single_flight: document::SingleFlight,
    /// The heads of the logs, for waiting requests.
    heads: Heads,
}

impl Shared {
    /// The length of content from which a request is redirected to the object store.
    fn redirect_from(&self, method: &Method, headers: &HeaderMap) -> Option<u64> {
        self.options.redirect_from.filter(|_| may_redirect(method, headers))
    }
}

/// The part of the server that a request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Document,
    Resource,
    Api,
    Hub,
    Other,
    /// The request waits for changes, so its duration is not measured.
    Waiting,
}

/// Counters of answers by class of status, and their times by part, looked up once.
struct Counters {
    classes: [Counter; 4],
    times: [Histogram; 5],
}

impl Counters {
    fn new() -> Self {
        Self {
            classes: ["2xx", "3xx", "4xx", "5xx"]
                .map(|class| counter!("abreast_http_responses_total", "class" => class)),
            times: ["document", "resource", "api", "hub", "other"]
                .map(|kind| histogram!("abreast_http_request_seconds", "kind" => kind)),
        }
    }

    fn count(&self, status: StatusCode, part: Part, time: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(2, 5) - 2;
        self.classes[class].increment(1);
        if let Some(times) = self.times.get(part as usize) {
            times.record(time);
        }
    }
}

async fn serve(
    stream: TcpStream,
    peer: IpAddr,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
    place: ConnectionSlot,
) {
    let peer = Peer::new(peer, stream.local_addr().ok().map(|own| own.ip()));
    let service = service_fn(|request| handle(&shared, request, peer, place.asked()));
    let options = &shared.options;
    let stream = match &options.certificate {
        None => ServerStream::Plain(stream),
        Some(certificate) => {
            let handshake =
                tokio::time::timeout(options.header_timeout, certificate.accept(stream));
            let accepted = tokio::select! {
                accepted = handshake => accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
                _ = place.leave() => return,
                () = stopped(stop.clone()) => return,
            };
            match accepted {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::debug!("the TLS handshake failed: {error}");
                    return;
                }
            }
        }
    };
    let stream = ClientStream::new(stream, options.stall_timeout, place.writes());
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    serve_until(connection, &place, stopped(stop)).await;
}

/// Answers a request. All requests are counted and logged here.
async fn handle(
    shared: &Arc<Shared>,
    mut request: Request<Incoming>,
    peer: Peer,
    in_flight: InFlight,
) -> io::Result<Response<Guarded<(InFlight, ClientRequest)>>> {
    let begun = Instant::now();
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
        Some(ClientRequest::uncounted())
    } else {
        shared.clients.enter(&client, known)
    };
    let (part, answer, counted) = match counted {
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

/// Whether an answer is an endless stream of events.
fn is_stream(answer: &Answer) -> bool {
    let media_type = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    media_type.is_some_and(|media_type| media_type.starts_with(b"text/event-stream"))
}

async fn answer(
    shared: &Arc<Shared>,
    site: &Arc<Site>,
    request: Request<Incoming>,
    client: Client,
) -> io::Result<(Part, Answer)> {
    let path = request.uri().path();
    if let Some(role) = role_of(path).filter(|role| !shared.options.roles.has(*role)) {
        return Ok((Part::Other, misdirected(role, &request)));
    }
    if hub::is_path(path) {
        return Ok((Part::Hub, handle_hub(site, request, client).await));
    }
    if admin::is_path(path) {
        return Ok((Part::Other, handle_admin(shared, site, request, &client).await));
    }
    if let Some(answer) = of_former_set(site, &request) {
        return Ok((Part::Other, answer));
    }
    if api::is_path(path) {
        let part = if api::waits(request.uri()) { Part::Waiting } else { Part::Api };
        return Ok((part, handle_api(shared, site, request, client).await));
    }
    if let Some(topic) = callback::topic_at(site, path) {
        return Ok((Part::Hub, handle_callback(site, &topic, request, client).await));
    }
    // The answer is 404 as for GET, instead of a refusal of the method, if clients cannot subscribe
    // at this path.
    if request.method() == Method::POST && callback::is_path(path) {
        return Ok((Part::Hub, callback::not_offered()));
    }
    dispatch(shared, site, &request, &client).await
}

/// The answer to a request that a node with another role must answer [rfc9110 §15.5.20].
fn misdirected(role: NodeRole, request: &Request<Incoming>) -> Answer {
    let detail = format!(
        "this node does not have the role `{role}`, which answers this address: ask the public URL, whose load balancer knows a \
         node with the role"
    );
    let mut answer = problem(StatusCode::MISDIRECTED_REQUEST, &detail);
    // The body of the request is not read.
    if !request.body().is_end_stream() {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// The answer to a valid request for a set that was renamed or removed.
fn of_former_set(site: &Arc<Site>, request: &Request<Incoming>) -> Option<Answer> {
    let mut answer = former::answer(site, request.method(), request.uri())?;
    let reader = matches!(*request.method(), Method::GET | Method::HEAD);
    if let Some(refused) = refused(request, reader) {
        return Some(refused);
    }
    // The body of the request is not read.
    if !request.body().is_end_stream() {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if reader && !api::is_path(request.uri().path()) {
        allow_browsers(answer.headers_mut());
    }
    Some(answer)
}

/// Requests to the hub have bodies.
async fn handle_hub(site: &Arc<Site>, request: Request<Incoming>, client: Client) -> Answer {
    let reader = matches!(*request.method(), Method::GET | Method::HEAD);
    match refused(&request, reader) {
        Some(answer) => answer,
        None => hub::answer(site, request, client).await,
    }
}

/// Forms of administrators have bodies.
async fn handle_admin(
    shared: &Arc<Shared>,
    site: &Arc<Site>,
    request: Request<Incoming>,
    client: &Client,
) -> Answer {
    let reader = matches!(*request.method(), Method::GET | Method::HEAD);
    let sites = &shared.sites;
    let admin = (sites.administration(), &sites.sessions);
    match refused(&request, reader) {
        Some(answer) => answer,
        None => admin::answer(site, &shared.heads, admin, request, client).await,
    }
}

/// Requests for callbacks have bodies.
async fn handle_callback(
    site: &Arc<Site>,
    topic: &Topic,
    request: Request<Incoming>,
    client: Client,
) -> Answer {
    let reader = matches!(*request.method(), Method::GET | Method::HEAD);
    match refused(&request, reader) {
        Some(answer) => answer,
        None => callback::answer(site, topic, request, client).await,
    }
}

/// Requests to the API may have bodies, and methods that write.
async fn handle_api(
    shared: &Arc<Shared>,
    site: &Arc<Site>,
    request: Request<Incoming>,
    client: Client,
) -> Answer {
    let reader = matches!(*request.method(), Method::GET | Method::HEAD);
    let refused = refused(&request, reader);
    if is_preflight(&request) && api::is_public(site, request.uri().path()) {
        return preflight();
    }
    // Scripts of other pages must not read responses to a token.
    let is_public = reader
        && !request.headers().contains_key(AUTHORIZATION)
        && api::is_public(site, request.uri().path());
    let mut answer = match refused {
        Some(answer) => answer,
        None => api::answer(site, &shared.heads, request, client).await,
    };
    if is_public {
        allow_browsers(answer.headers_mut());
    }
    answer
}

async fn dispatch(
    shared: &Arc<Shared>,
    site: &Arc<Site>,
    request: &Request<Incoming>,
    client: &Client,
) -> io::Result<(Part, Answer)> {
    if is_preflight(request) {
        return Ok((Part::Other, preflight()));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut answer =
            problem(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok((Part::Other, answer));
    }
    if let Some(answer) = refused(request, true) {
        return Ok((Part::Other, answer));
    }
    let route = route(request.uri().path(), |slug| site.sets.find(slug));
    let is_published =
        !matches!(route, Route::Live | Route::Metrics | Route::HubEvents | Route::NotFound);
    let part = match &route {
        Route::Published(_) => Part::Document,
        Route::Resource(..) | Route::Memento(..) | Route::TimeGate(_) | Route::TimeMap(_) => {
            Part::Resource
        }
        Route::HubEvents => Part::Hub,
        Route::Live | Route::Ready | Route::Metrics | Route::NotFound => Part::Other,
    };
    let absent = match &route {
        Route::Resource(set, _) | Route::Memento(set, _) => Some(*set),
        Route::Published(path) => path.split('/').next().and_then(|slug| site.sets.find(slug)),
        _ => None,
    };
    if let Some(set) = absent.filter(|set| set.is_absent()) {
        let detail = format!("the folder of the set `{}` is missing", set.published.slug);
        let mut answer = try_later(&detail, resource::MISSING_SECONDS);
        allow_browsers(answer.headers_mut());
        return Ok((part, answer));
    }
    let mut answer = match route {
        Route::Live => Ok(health::live()),
        Route::Ready => {
            let stopping = shared.stopping.load(Ordering::Relaxed);
            blocking(shared, move |sites| health::ready(sites, stopping)).await
        }
        Route::Metrics => blocking(shared, health::metrics).await,
        Route::Published(path) if is_directory(&path) && shared.options.keys.is_some() => {
            Ok(keys(shared.options.keys.as_ref(), site.publisher.urls().base()))
        }
        Route::Published(path) if site.sets.is_empty() && path != STYLE && path != ICON => {
            Ok(problem(StatusCode::NOT_FOUND, "this server is a hub only: ask /hub"))
        }
        Route::Published(path) => published((shared, site), path, request, client).await,
        Route::Resource(set, path) if path.is_empty() => {
            Ok(see_other(&set.published.urls.resources_page()))
        }
        Route::Resource(set, path) => {
            let (method, headers) = (request.method(), request.headers());
            let mut answer = if set.published.urls.naming().names_entities() {
                let query = request.uri().query();
                entity::answer(site, set, &path, query, method, headers).await?
            } else {
                let redirect_from = shared.redirect_from(method, headers);
                resource::answer(site, set, &path, (method, headers), redirect_from).await?
            };
            memento::link_original(site, set, &path, &mut answer).await?;
            Ok(answer)
        }
        Route::Memento(set, version) => {
            let version = with_query(version, request.uri().query());
            memento::answer(site, set, &version, request.method(), request.headers()).await
        }
        Route::TimeGate(uri) => {
            timegate::answer(site, &with_query(uri, request.uri().query()), request.headers()).await
        }
        Route::TimeMap(uri) => {
            let uri = with_query(uri, request.uri().query());
            timemap::answer(site, &uri, request.method(), request.headers()).await
        }
        Route::HubEvents => {
            let stop = shared.stop.clone();
            Ok(hub::events(
                site,
                request.uri().query(),
                (request.method(), client),
                request.headers(),
                stop,
            )
            .await)
        }
        Route::NotFound => Ok(nothing(site, "")),
    }?;
    if is_published {
        allow_browsers(answer.headers_mut());
    }
    Ok((part, answer))
}

/// Scripts of any page may read published documents, because these are the same for everyone
/// [fetch §3.3].
fn allow_browsers(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
}

/// Whether this is a preflight request of a browser [fetch §3.3.2].
fn is_preflight(request: &Request<Incoming>) -> bool {
    *request.method() == Method::OPTIONS
        && request.headers().contains_key(ORIGIN)
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight request [fetch §3.3.2].
fn preflight() -> Answer {
    let mut answer = Answer::new(ResponseBody::empty());
    let headers = answer.headers_mut();
    allow_browsers(headers);
    headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    answer
}

/// Answers with the document, file or topic that a projection has at a path.
async fn published(
    (shared, site): (&Arc<Shared>, &Arc<Site>),
    path: String,
    request: &Request<Incoming>,
    client: &Client,
) -> io::Result<Answer> {
    let (method, headers) = (request.method(), request.headers());
    let topic = site.publisher.topic_at(&path);
    let is_document = site.publisher.is_document(&path);
    if is_document || site.publisher.is_file(&path) {
        // A feed can also be a topic.
        let is_topic = topic.is_some();
        if let Some(found) = topic.filter(|_| topic::wants_events(headers)) {
            return Ok(
                topic::answer(site, found, (method, client), headers, shared.stop.clone()).await
            );
        }
        let query = request.uri().query();
        let mut answer = if is_document {
            document::answer(site, &shared.single_flight, path, query, (method, client), headers)
                .await?
        } else {
            let redirect_from = shared.redirect_from(method, headers);
            file::answer(site, path, query, (method, client), headers, redirect_from).await?
        };
        if is_topic {
            answer.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
        }
        return Ok(answer);
    }
    if let Some(found) = topic {
        return Ok(topic::answer(site, found, (method, client), headers, shared.stop.clone()).await);
    }
    if let Some(set) = site.sets.find(path.trim_end_matches('/')) {
        return Ok(see_other(&set.published.urls.page()));
    }
    let of_set = |slug: &str| site.sets.find(slug).is_some();
    if site.publisher.is_lasting_topic(&path) && !path.split('/').next().is_some_and(of_set) {
        return Ok(topic::removed(site, &path, method, headers).await);
    }
    if let Some(description) = entity::at_its_iri(site, &path).await? {
        return Ok(see_other(&description));
    }
    Ok(nothing(site, &path))
}

/// Runs work that may wait for the store on a blocking thread.
async fn blocking(
    shared: &Arc<Shared>,
    work: impl FnOnce(&CurrentSite) -> Answer + Send + 'static,
) -> io::Result<Answer> {
    let sites = Arc::clone(&shared.sites);
    tokio::task::spawn_blocking(move || work(&sites)).await.map_err(io::Error::other)
}

/// Path of the style sheet, which pages of errors need too.
const STYLE: &str = "style.css";
/// The icon of all pages.
const ICON: &str = "icon.svg";

/// Whether this is the path of the keys that sign requests, without its first slash.
fn is_directory(path: &str) -> bool {
    KeyDirectory::PATH.strip_prefix('/') == Some(path)
}

/// The keys that sign requests, with a proof that this server has them
/// [web-bot-auth].
fn keys(keys: Option<&KeyDirectory>, base: &str) -> Answer {
    let Some(keys) = keys else {
        return problem(StatusCode::NOT_FOUND, "this server publishes no keys");
    };
    let mut answer = text(KeyDirectory::MEDIA_TYPE, keys.document().to_owned());
    let headers = answer.headers_mut();
    for (name, value) in keys.headers(base, SystemTime::now()) {
        if let Some(name) = name {
            headers.insert(name, value);
        }
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(KEYS_MAY_BE_CACHED));
    answer
}

fn nothing(site: &Site, path: &str) -> Answer {
    let mut detail = "nothing is published at this address".to_owned();
    if let Some(set) = path.split_once('/').and_then(|(slug, _)| site.publisher.find_set(slug)) {
        let _ = write!(detail, "; {} has the addresses of the set", set.urls.page());
    }
    problem(StatusCode::NOT_FOUND, &detail)
}

/// Appends the query to a path that contains a URI.
fn with_query(path: String, query: Option<&str>) -> String {
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path,
    }
}

/// Refuses requests that regular clients do not send, and closes the connection after the response.
fn refused(request: &Request<Incoming>, reader: bool) -> Option<Answer> {
    let (status, detail) = if !host_is_valid(request.headers(), request.version()) {
        (StatusCode::BAD_REQUEST, "a request names one host")
    } else if reader && !request.body().is_end_stream() {
        // A body here can hide a second request from a proxy [rfc9110 §9.3.1].
        (StatusCode::BAD_REQUEST, "GET and HEAD have no body here")
    } else if request
        .uri()
        .path_and_query()
        .is_some_and(|target| target.as_str().len() > MAX_TARGET)
    {
        (StatusCode::URI_TOO_LONG, "nothing published has so long an address")
    } else {
        return None;
    };
    let mut answer = problem(status, detail);
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Some(answer)
}

/// Whether the request has exactly one Host header with valid characters; HTTP/1.0 does not require
/// one [rfc9112 §3.2].
fn host_is_valid(headers: &HeaderMap, version: Version) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => version < Version::HTTP_11,
        (Some(host), None) => host
            .as_bytes()
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(byte)),
        (Some(_), Some(_)) => false,
    }
}
