//! Sending short messages to many hosts.
//!
//! A [`Client`](crate::Client) fetches large amounts from a few servers that its user chose. A
//! [`Sender`] posts short messages to thousands of addresses from third parties. Therefore it does
//! not follow redirects or use proxies, connects to public addresses only, reads at most the
//! requested part of a response, and has one time limit for a whole exchange. A server with TLS may
//! choose HTTP/2: all requests to its origin then share a connection.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Scheme, Uri};
use http::{Method, Request, StatusCode, Version};
use http_body_util::Full;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tracing::{Instrument as _, Span};

use crate::address::error::{Error, ErrorKind};
use crate::address::global::is_global;
use crate::address::origin::{Origin, Target};
use crate::settings::options::Options;
use crate::transport::connect::connect_any;
use crate::transport::connection::Stream;
use crate::transport::tls;
use crate::transport::trace::{carry, client_span};

mod answer;
mod http2;
mod line;

pub use answer::BodyWanted;
use answer::{Head, Input, Malformed, Rest};
use http2::{Fault, Http2Line};
use line::{Failure, Line};

/// Most bytes of a response in addition to head and body: interim responses, chunk sizes, trailers.
const FRAMING: u64 = 16 << 10;
/// Most addresses of a host name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Limits and behaviour of a [`Sender`].
#[derive(Debug, Clone)]
pub struct SenderOptions {
    /// Longest time for name resolution, TCP connect and TLS handshake together. Default 5 s.
    pub connect_timeout: Duration,
    /// Longest time for a whole exchange, connecting included. Default 30 s.
    pub timeout: Duration,
    /// How long to wait for the rest of an unwanted response body, so that the connection can be
    /// used again. Default 1 s.
    pub linger: Duration,
    /// Time after which an unused connection is closed. Default 30 s.
    pub keep_alive: Duration,
    /// Most unused connections to one origin. Default 8.
    pub kept_per_origin: usize,
    /// Most origins remembered. Origins in use are not forgotten. Default 4,096.
    pub max_origins: usize,
    /// Most hosts resolved at the same time. One half is for hosts that were resolved before, so
    /// that they do not wait for an unresponsive DNS server. A query to such a server occupies a
    /// thread until the system gives up, so the runtime should have more blocking threads than this
    /// number. Default 32.
    pub lookups: usize,
    /// Most bytes of a response's head. Default 16 KiB.
    pub max_head_bytes: usize,
    /// Whether to connect to globally reachable addresses only. Default true.
    pub public_only: bool,
    /// Whether a server with TLS may choose HTTP/2. Default true.
    pub http2: bool,
    /// The value of the `User-Agent` header.
    pub user_agent: String,
    /// A PEM file with certificates that are trusted in addition to the built-in ones. Default
    /// none.
    pub extra_roots: Option<PathBuf>,
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            linger: Duration::from_secs(1),
            keep_alive: Duration::from_secs(30),
            kept_per_origin: 8,
            max_origins: 4_096,
            lookups: 32,
            max_head_bytes: 16 << 10,
            public_only: true,
            http2: true,
            user_agent: concat!("abreast/", env!("CARGO_PKG_VERSION")).to_owned(),
            extra_roots: None,
        }
    }
}

/// Sends requests over reused connections, which its clones share. Must be used within one tokio
/// runtime.
#[derive(Clone)]
pub struct Sender(Arc<Inner>);

struct Inner {
    options: SenderOptions,
    user_agent: HeaderValue,
    tls: Arc<ClientConfig>,
    /// For servers that answer by HTTP/1.1 only.
    tls_http1: Arc<ClientConfig>,
    /// For hosts that were not resolved yet, and for hosts that were.
    lookups: [Arc<Semaphore>; 2],
    /// By scheme and authority as written in URLs.
    origins: Mutex<HashMap<Box<str>, Arc<Pool>>>,
}

/// An origin and its unused connections.
struct Pool {
    origin: Origin,
    /// The first header lines of each request, after the request line.
    lines: Vec<u8>,
    /// Whether the host name was resolved before.
    is_resolved: AtomicBool,
    #[expect(clippy::vec_box, reason = "a connection is boxed once and moved many times")]
    idle: Mutex<Vec<Box<Line>>>,
    /// The connection of HTTP/2, if the server has chosen it.
    http2: Mutex<Option<Arc<Http2Line>>>,
    /// Whether the server refused a request by HTTP/2.
    refuses_http2: AtomicBool,
}

/// A connection by the protocol that the server has chosen.
enum Connection {
    Http1(Box<Line>),
    Http2(Arc<Http2Line>),
}

/// The parsed URL of a recipient.
#[derive(Clone)]
pub struct Recipient {
    pool: Arc<Pool>,
    path: PathAndQuery,
}

/// The response of a recipient to a message.
#[derive(Debug)]
pub struct Answer {
    /// The response's status; redirects are not followed.
    pub status: StatusCode,
    /// The response's headers. Empty if the status is a success and the body is not wanted.
    pub headers: HeaderMap,
    /// The part of the response's body that was read.
    pub body: Bytes,
}

/// A message to a recipient: headers and a body.
#[derive(Debug, Clone, Default)]
pub struct Message<'a> {
    /// Sent as they are, in addition to `Host`, `User-Agent` and `Content-Length`.
    pub headers: HeaderMap,
    /// More headers, encoded once for many messages.
    pub common: Option<&'a HeaderLines>,
    /// The body. A clone shares the bytes.
    pub body: Bytes,
}

/// Headers as they are sent, written once for many messages.
#[derive(Debug, Clone, Default)]
pub struct HeaderLines {
    /// For HTTP/1.1.
    lines: Vec<u8>,
    /// For HTTP/2.
    fields: HeaderMap,
}

impl From<&HeaderMap> for HeaderLines {
    fn from(headers: &HeaderMap) -> Self {
        let mut lines = Vec::new();
        for (name, value) in headers {
            put_line(&mut lines, name, value);
        }
        Self { lines, fields: headers.clone() }
    }
}

fn put_line(lines: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
        lines.extend_from_slice(part);
    }
}

impl Sender {
    /// A sender without connections.
    ///
    /// # Errors
    /// `net.tls` when the extra certificates cannot be read.
    pub fn new(options: SenderOptions) -> Result<Self, Error> {
        let name: String = options.user_agent.chars().filter(|c| !c.is_control()).collect();
        let user_agent =
            HeaderValue::from_str(&name).unwrap_or_else(|_| HeaderValue::from_static("abreast"));
        let of_tls = Options { extra_roots: options.extra_roots.clone(), ..Options::default() };
        let tls = tls::client_config(&of_tls, None, tls::protocols(options.http2))
            .map_err(|message| Error::new(ErrorKind::Tls, "", message))?;
        let tls_http1 = tls::without_http2(Arc::clone(&tls));
        let lookups =
            [(); 2].map(|()| Arc::new(Semaphore::new(options.lookups.div_ceil(2).max(1))));
        let origins = Mutex::default();
        Ok(Self(Arc::new(Inner { options, user_agent, tls, tls_http1, lookups, origins })))
    }

    /// The options with which the sender was created.
    pub fn options(&self) -> &SenderOptions {
        &self.0.options
    }

    /// Parses a URL. Cheap for a known origin.
    ///
    /// # Errors
    /// `uri.authority`, `uri.syntax`: not http or https, with user and password, or invalid.
    pub fn recipient(&self, url: &str) -> Result<Recipient, Error> {
        let target = Target::split(url)?;
        let path = target.path_and_query()?;
        let mut origins = lock(&self.0.origins);
        if let Some(pool) = origins.get(target.origin) {
            return Ok(Recipient { pool: Arc::clone(pool), path });
        }
        let origin = Origin::parse(target.origin).map_err(|error| error.with_url(url))?;
        if origin.credentials.is_some() {
            return Err(Error::new(ErrorKind::Url, "", "the URL has a user or password")
                .with_help("put an unguessable part into the path instead"));
        }
        let options = &self.0.options;
        if origins.len() >= options.max_origins {
            origins.retain(|_, pool| {
                Arc::strong_count(pool) > 1 || pool.has_young(options.keep_alive)
            });
            if origins.len() >= options.max_origins {
                origins.retain(|_, pool| Arc::strong_count(pool) > 1);
            }
        }
        let mut lines = Vec::new();
        put_line(&mut lines, &header::HOST, &origin.host_header);
        put_line(&mut lines, &header::USER_AGENT, &self.0.user_agent);
        let pool = Arc::new(Pool {
            origin,
            lines,
            is_resolved: AtomicBool::new(false),
            idle: Mutex::default(),
            http2: Mutex::default(),
            refuses_http2: AtomicBool::new(false),
        });
        origins.insert(target.origin.into(), Arc::clone(&pool));
        Ok(Recipient { pool, path })
    }

    /// Closes connections that were not used for `keep_alive`. Call it periodically.
    pub fn close_expired(&self) {
        let keep_alive = self.0.options.keep_alive;
        for pool in lock(&self.0.origins).values() {
            lock(&pool.idle).retain(|line| line.idle_since.elapsed() < keep_alive);
            drop(lock(&pool.http2).take_if(|line| line.last_used().elapsed() >= keep_alive));
        }
    }

    /// Posts a message; see [`Sender::exchange`].
    ///
    /// # Errors
    /// As [`Sender::exchange`].
    pub async fn post(
        &self,
        to: &Recipient,
        message: Message<'_>,
        want: BodyWanted,
    ) -> Result<Answer, Error> {
        self.exchange(to, &Method::POST, message, want).await
    }

    /// Sends a GET request; see [`Sender::exchange`].
    ///
    /// # Errors
    /// As [`Sender::exchange`].
    pub async fn get(
        &self,
        to: &Recipient,
        message: Message<'_>,
        want: BodyWanted,
    ) -> Result<Answer, Error> {
        self.exchange(to, &Method::GET, message, want).await
    }

    /// Sends a request and returns its response with any status.
    ///
    /// A request on a reused connection that the server had closed is sent again on a new one: the
    /// recipient may see a message twice.
    ///
    /// # Errors
    /// `net.connect`, `net.dns`, `net.timeout`, `net.tls`, `http.truncated`, `http.header`,
    /// `http.status`, `http.protocol`, and `http.size` for a wanted body that is too large.
    pub async fn exchange(
        &self,
        to: &Recipient,
        method: &Method,
        message: Message<'_>,
        want: BodyWanted,
    ) -> Result<Answer, Error> {
        let span = client_span(method, to.origin());
        let sent = self.exchange_in(&span, to, method, message, want);
        let result = sent.instrument(span.clone()).await;
        match &result {
            Ok(answer) => span.record("http.response.status_code", answer.status.as_u16()),
            Err(_) => span.record("otel.status_code", "ERROR"),
        };
        result
    }

    async fn exchange_in(
        &self,
        span: &Span,
        to: &Recipient,
        method: &Method,
        mut message: Message<'_>,
        want: BodyWanted,
    ) -> Result<Answer, Error> {
        carry(span, &mut message.headers);
        let options = &self.0.options;
        let now = Instant::now();
        let deadline = now + options.timeout;
        let (BodyWanted::Whole(most_body) | BodyWanted::Nothing(most_body)) = want;
        let most = (options.max_head_bytes + most_body) as u64 + FRAMING;
        let head = head(to, method, &message);
        let wanted =
            |status: StatusCode| matches!(want, BodyWanted::Whole(_)) || !status.is_success();
        let mut kept = to.pool.take_idle(now, options.keep_alive);
        loop {
            let reused = kept.is_some();
            let connection = match kept.take() {
                Some(connection) => connection,
                None => self.connect(&to.pool, deadline).await?,
            };
            let mut line = match connection {
                Connection::Http1(line) => line,
                Connection::Http2(line) => {
                    let request = self.request(to, method, &message)?;
                    match self.exchange_http2(&line, request, deadline, want).await {
                        Ok(answer) => return Ok(answer),
                        Err(fault) => {
                            if fault.ends_connection() {
                                to.pool.forget(&line);
                            }
                            let refuses = fault.wants_http1();
                            if refuses {
                                to.pool.refuses_http2.store(true, Relaxed);
                                to.pool.forget(&line);
                            } else if !reused || !fault.was_before_any_answer() {
                                return Err(fault.into_error());
                            }
                        }
                    }
                    continue;
                }
            };
            let mut input = Input::new(options.max_head_bytes);
            match line.ask((&head, &message.body), &mut input, wanted, deadline, most).await {
                Ok(answer) => return self.take(to, line, answer, input, deadline, want).await,
                Err(failure) if reused && failure.was_before_any_answer(line.received()) => {}
                Err(failure) => return Err(failure.into_error()),
            }
        }
    }

    /// The request as HTTP/2 has it.
    fn request(
        &self,
        to: &Recipient,
        method: &Method,
        message: &Message<'_>,
    ) -> Result<Request<Full<Bytes>>, Error> {
        let invalid =
            |cause| Error::new(ErrorKind::Url, "", "the URL is invalid").with_cause(cause);
        let uri = Uri::builder()
            .scheme(Scheme::HTTPS)
            .authority(to.pool.origin.host_header.as_bytes())
            .path_and_query(to.path.clone())
            .build()
            .map_err(invalid)?;
        let mut request = Request::new(Full::new(message.body.clone()));
        (*request.method_mut(), *request.uri_mut()) = (method.clone(), uri);
        *request.version_mut() = Version::HTTP_2;
        let headers = request.headers_mut();
        headers.insert(header::USER_AGENT, self.0.user_agent.clone());
        if let Some(common) = message.common {
            headers.extend(common.fields.clone());
        }
        headers.extend(message.headers.clone());
        if message.body.is_empty() && method == Method::POST {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok(request)
    }

    async fn exchange_http2(
        &self,
        line: &Http2Line,
        request: Request<Full<Bytes>>,
        deadline: Instant,
        want: BodyWanted,
    ) -> Result<Answer, Fault> {
        let (head, body) = line.ask(request, deadline).await?.into_parts();
        let linger = Instant::now() + self.0.options.linger;
        let is_wanted = matches!(want, BodyWanted::Whole(_)) || !head.status.is_success();
        let headers = if is_wanted { head.headers } else { HeaderMap::new() };
        let body = http2::read(body, want, deadline, linger).await?;
        Ok(Answer { status: head.status, headers, body })
    }

    async fn take(
        &self,
        to: &Recipient,
        mut line: Box<Line>,
        mut head: Head,
        mut input: Input,
        deadline: Instant,
        want: BodyWanted,
    ) -> Result<Answer, Error> {
        let options = &self.0.options;
        let mut body = Bytes::new();
        let whole = match want {
            _ if head.rest == Rest::NONE => true,
            BodyWanted::Whole(most) => {
                body = read_whole(&mut line, &mut input, &mut head.rest, deadline, most).await?;
                true
            }
            BodyWanted::Nothing(most) if head.keeps => {
                let deadline = deadline.min(Instant::now() + options.linger);
                skip(&mut line, &mut input, &mut head.rest, deadline, most).await
            }
            BodyWanted::Nothing(_) => false,
        };
        if whole && head.keeps && input.is_empty() {
            to.pool.give_back(line, options.kept_per_origin);
        }
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// The addresses of a recipient's host, at most 8.
    ///
    /// # Errors
    /// `net.dns`, `net.timeout`.
    pub async fn addresses(&self, of: &Recipient) -> Result<Vec<IpAddr>, Error> {
        let resolved =
            tokio::time::timeout(self.0.options.connect_timeout, self.resolve(&of.pool)).await;
        let late = |_| Error::new(ErrorKind::Timeout, "", "resolving the host name took too long");
        Ok(resolved.map_err(late)??.into_iter().map(|address| address.ip()).collect())
    }

    async fn resolve(&self, pool: &Pool) -> Result<Vec<SocketAddr>, Error> {
        let origin = &pool.origin;
        if let Ok(address) = origin.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, origin.port)]);
        }
        let failed = || {
            Error::new(
                ErrorKind::Dns,
                "",
                format!("cannot resolve the host name `{}`", origin.host),
            )
        };
        let lookups = &self.0.lookups[usize::from(pool.is_resolved.load(Relaxed))];
        let place = Arc::clone(lookups).acquire_owned().await.map_err(|_| failed())?;
        let name = (origin.host.clone(), origin.port);
        // The permit is released when the system call returns, even if the caller stopped waiting.
        let asked = tokio::task::spawn_blocking(move || {
            let found =
                name.to_socket_addrs().map(|found| found.take(MAX_ADDRESSES).collect::<Vec<_>>());
            drop(place);
            found
        });
        let addresses = asked.await.map_err(|_| failed())?.map_err(|e| failed().with_cause(e))?;
        pool.is_resolved.store(!addresses.is_empty(), Relaxed);
        if addresses.is_empty() { Err(failed()) } else { Ok(addresses) }
    }

    /// Resolves, connects to each address in turn and does the TLS handshake. The check for public
    /// addresses applies to the address of the connection itself, so that a name cannot resolve to
    /// another address after the check.
    async fn connect(&self, pool: &Pool, deadline: Instant) -> Result<Connection, Error> {
        let origin = &pool.origin;
        let options = &self.0.options;
        let deadline = deadline.min(Instant::now() + options.connect_timeout);
        let late = |what: &str| {
            Error::new(
                ErrorKind::Timeout,
                "",
                format!("{what} took longer than {:?}", options.connect_timeout),
            )
        };
        let mut addresses = timeout_at(deadline, self.resolve(pool))
            .await
            .map_err(|_| late("resolving the host name"))??;
        if options.public_only {
            addresses.retain(|address| is_global(address.ip()));
            if addresses.is_empty() {
                let message = format!("{} is a private address", origin.host);
                return Err(Error::new(ErrorKind::Private, "", message)
                    .with_help("name an address that everybody can reach"));
            }
        }
        let tcp = connect_any(&addresses, deadline).await.map_err(|e| {
            if e.kind() == io::ErrorKind::TimedOut {
                return late("connecting").with_cause(e);
            }
            let message = format!("cannot connect to {} port {}", origin.host, origin.port);
            Error::new(ErrorKind::Connect, "", message).with_cause(e)
        })?;
        // Messages are written whole; waiting to fill a segment only adds latency.
        tcp.set_nodelay(true).map_err(|e| {
            Error::new(ErrorKind::Connect, "", "cannot set up the socket").with_cause(e)
        })?;
        let mut stream = Stream::Plain(tcp);
        if origin.https {
            let handshake = self.handshake(pool, stream);
            stream =
                timeout_at(deadline, handshake).await.map_err(|_| late("the TLS handshake"))??;
        }
        if !stream.is_http2() {
            return Ok(Connection::Http1(Box::new(Line::new(stream))));
        }
        let opened = timeout_at(deadline, Http2Line::open(stream, options.max_head_bytes)).await;
        let opened = opened.map_err(|_| late("the start of HTTP/2"))?;
        let line = Arc::new(opened.map_err(|error| Fault::Http(error).into_error())?);
        // If several requests connected at the same time, later requests share the last connection.
        *lock(&pool.http2) = Some(Arc::clone(&line));
        Ok(Connection::Http2(line))
    }

    async fn handshake(&self, pool: &Pool, stream: Stream) -> Result<Stream, Error> {
        let origin = &pool.origin;
        let name = ServerName::try_from(origin.host.clone()).map_err(|e| {
            Error::new(ErrorKind::Tls, "", "the host name cannot be in a certificate").with_cause(e)
        })?;
        let refuses_http2 = pool.refuses_http2.load(Relaxed);
        let tls = if refuses_http2 { &self.0.tls_http1 } else { &self.0.tls };
        match TlsConnector::from(Arc::clone(tls)).connect(name, stream).await {
            Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
            Err(e) => Err(tls::failed(e, "")),
        }
    }
}

impl Recipient {
    /// `scheme://host:port` in a normal form. Recipients with the same origin share connections.
    pub fn origin(&self) -> &str {
        &self.pool.origin.key
    }

    /// Host of the URL: a name, or an address without brackets.
    pub fn host(&self) -> &str {
        &self.pool.origin.host
    }
}

impl Pool {
    /// The connection of HTTP/2, or an idle connection that still works, the youngest first.
    fn take_idle(&self, now: Instant, keep_alive: Duration) -> Option<Connection> {
        let http2 = lock(&self.http2).clone();
        if let Some(line) = http2.filter(|line| line.is_open()) {
            return Some(Connection::Http2(line));
        }
        let mut idle = lock(&self.idle);
        while let Some(mut line) = idle.pop() {
            if now.duration_since(line.idle_since) < keep_alive && line.is_quiet() {
                return Some(Connection::Http1(line));
            }
        }
        None
    }

    fn give_back(&self, mut line: Box<Line>, most: usize) {
        line.idle_since = Instant::now();
        let mut idle = lock(&self.idle);
        if idle.len() < most {
            idle.push(line);
        }
    }

    /// Removes a connection of HTTP/2, which requests in flight may still use.
    fn forget(&self, line: &Arc<Http2Line>) {
        drop(lock(&self.http2).take_if(|shared| Arc::ptr_eq(shared, line)));
    }

    fn has_young(&self, keep_alive: Duration) -> bool {
        let is_young = |line: &Arc<Http2Line>| line.last_used().elapsed() < keep_alive;
        if lock(&self.http2).as_ref().is_some_and(is_young) {
            return true;
        }
        lock(&self.idle).iter().any(|line| line.idle_since.elapsed() < keep_alive)
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Recipient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recipient")
            .field("origin", &self.origin())
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// The bytes of a request before its body.
fn head(to: &Recipient, method: &Method, message: &Message<'_>) -> Vec<u8> {
    let common = message.common.map_or(&[][..], |common| &common.lines);
    let mut head =
        Vec::with_capacity(256 + to.path.as_str().len() + to.pool.lines.len() + common.len());
    for part in [method.as_str(), " ", to.path.as_str(), " HTTP/1.1\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
    head.extend_from_slice(&to.pool.lines);
    head.extend_from_slice(common);
    for (name, value) in &message.headers {
        put_line(&mut head, name, value);
    }
    if !message.body.is_empty() || method == Method::POST {
        let _ = write!(head, "content-length: {}\r\n", message.body.len());
    }
    head.extend_from_slice(b"\r\n");
    head
}

async fn read_whole(
    line: &mut Line,
    input: &mut Input,
    rest: &mut Rest,
    deadline: Instant,
    most: usize,
) -> Result<Bytes, Error> {
    let too_large =
        || Error::new(ErrorKind::Size, "", format!("the answer is larger than {most} bytes"));
    if rest.at_least() > most as u64 {
        return Err(too_large());
    }
    let mut body = Vec::new();
    input.expect_much();
    loop {
        let ended = input.body(rest, |bytes| {
            body.extend_from_slice(bytes);
            if body.len() > most { Err(BodyRejected::TooLarge) } else { Ok(()) }
        });
        match ended {
            Ok(true) => break,
            Ok(false) => {}
            Err(BodyRejected::TooLarge) => return Err(too_large()),
            Err(BodyRejected::Malformed(malformed)) => {
                return Err(Failure::Malformed(malformed).into_error());
            }
        }
        if line.receive(input, deadline).await.map_err(Failure::into_error)? == 0 {
            if *rest == Rest::UntilClose {
                break;
            }
            return Err(Error::new(
                ErrorKind::Truncated,
                "",
                "the answer ended before its announced end",
            ));
        }
    }
    Ok(body.into())
}

/// The reason why a body is rejected.
enum BodyRejected {
    TooLarge,
    Malformed(Malformed),
}

impl From<Malformed> for BodyRejected {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// Reads past the body. Returns whether it ended within its limits.
async fn skip(
    line: &mut Line,
    input: &mut Input,
    rest: &mut Rest,
    deadline: Instant,
    most: usize,
) -> bool {
    if rest.at_least() > most as u64 {
        return false;
    }
    let mut read = 0;
    loop {
        let ended = input.body(rest, |bytes| {
            read += bytes.len();
            Ok::<_, Malformed>(())
        });
        match ended {
            Ok(ended) if ended || read > most => return ended && read <= most,
            Ok(_) => {}
            Err(_) => return false,
        }
        if !matches!(line.receive(input, deadline).await, Ok(1..)) {
            return false;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
