//! The HTTP client: connection pool, redirects, checks.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, StatusCode, Uri};
use http_body_util::Full;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use crate::address::error::{Error, ErrorKind};
use crate::address::origin::{Origin, Target};
use crate::address::redirect::{is_redirect, next_url};
use crate::address::secret::Authorization;
use crate::address::userinfo::without_userinfo;
use crate::fetch::request::Request;
use crate::fetch::response::Response;
use crate::transport::connect::speaks_tls;
use crate::transport::connection::Failure;
use crate::transport::failure::failed;
use crate::transport::host::{Forwards, Host, Wanted};
use crate::transport::shared::{Protocol, RowFault, Shared};
use crate::transport::trace::{carry, client_span};

/// Most origins to which a client has open connections.
const MAX_ORIGINS: usize = 256;
/// How often a request is sent in a row again after the connection ended before its answer.
const OVERTAKEN_MAX: u32 = 2;

/// A client of HTTP/1.1 and HTTP/2 with its connections. Use one per thread; clones share the
/// connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>, u32);

struct Inner {
    shared: Arc<Shared>,
    user_agent: HeaderValue,
    /// By scheme and authority as written, so that a URL is parsed only once.
    hosts: Mutex<HashMap<Box<str>, Arc<Host>>>,
}

/// The server and the path of a request, or of a redirect.
struct Hop<'a> {
    host: &'a Arc<Host>,
    target: &'a Target<'a>,
    url: &'a str,
    credentials: Option<&'a Authorization>,
    public_only: bool,
}

impl Client {
    /// A client without open connections.
    pub fn new(shared: Arc<Shared>) -> Self {
        // A header cannot have control characters: remove them from the name.
        let name: String = shared.options.user_agent.chars().filter(|c| !c.is_control()).collect();
        let user_agent =
            HeaderValue::from_str(&name).unwrap_or_else(|_| HeaderValue::from_static("abreast"));
        let retries = shared.options.retries;
        Self(Arc::new(Inner { shared, user_agent, hosts: Mutex::default() }), retries)
    }

    /// The same client with a different number of retries.
    #[must_use]
    pub fn with_retries(&self, retries: u32) -> Self {
        Self(Arc::clone(&self.0), retries)
    }

    /// Number of retries after transient failures.
    pub const fn retries(&self) -> u32 {
        self.1
    }

    /// Options, counters and pauses that clients share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Sends a request, follows redirects and returns when the head of the response is complete.
    ///
    /// One attempt, except that a request on a reused connection is sent again if the server had
    /// closed the connection before any byte of the response. Any status from 200 to 599 that fits
    /// the request is `Ok`; see [`Response::require_success`]. The response occupies one of the
    /// host's `connections_per_host` places until it is read or dropped: a task that holds
    /// responses and waits for more from the same host may wait forever.
    ///
    /// If the rest of a body is requested and the response is another part, or a refusal of the
    /// range, the whole body is requested. Therefore a response with status 206 is exactly the
    /// requested rest.
    ///
    /// # Errors
    /// Every code of [`Error::code`] except `http.size`.
    pub async fn send(&self, request: &Request<'_>) -> Result<Response, Error> {
        let response = self.send_as_is(request).await?;
        if request.range_from.is_some_and(|(from, etag)| response.is_no_rest_from(from, etag)) {
            drop(response);
            return self.send_as_is(&Request { range_from: None, ..*request }).await;
        }
        Ok(response)
    }

    async fn send_as_is(&self, request: &Request<'_>) -> Result<Response, Error> {
        let target = Target::split(request.url)?;
        let host = self.host(target.origin).map_err(|error| error.with_url(request.url))?;
        let credentials = request.authorization.or(host.origin.credentials.as_ref());
        let (url, public_only) = (request.url, request.public_only);
        let first = Hop { host: &host, target: &target, url, credentials, public_only };
        let mut response = self.exchange(&first, request).await?;
        if request.post.is_some() || !is_redirect(response.status()) {
            return Ok(response);
        }
        let request = &Request { pipelined: false, ..*request };
        let mut visited = vec![response.url().to_owned()];
        let (mut same_origin, mut has_moved) = (true, true);
        loop {
            let current = visited.last().expect("has the first URL");
            let location = response.headers().get(header::LOCATION).map(HeaderValue::as_bytes);
            let next = next_url(current, location, self.0.shared.options.allow_downgrade)?;
            if visited.contains(&next) {
                return Err(Error::new(
                    ErrorKind::Redirect,
                    request.url,
                    format!("the server redirects in a circle at {next}"),
                ));
            }
            if visited.len() > self.0.shared.options.max_redirects as usize {
                let message =
                    format!("more than {} redirects", self.0.shared.options.max_redirects);
                return Err(Error::new(ErrorKind::Redirect, request.url, message)
                    .with_help("use the URL the redirects lead to"));
            }
            has_moved &= matches!(
                response.status(),
                StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT
            );
            // Release the connection and the host's place before the next request.
            response.discard().await;
            let target = Target::split(&next)?;
            let next_host = self.host(target.origin).map_err(|error| error.with_url(&next))?;
            same_origin = same_origin && next_host.origin.key == host.origin.key;
            let credentials = credentials.filter(|_| same_origin);
            let public_only = request.public_only || next_host.origin.host != host.origin.host;
            let (host, url) = (&next_host, next.as_str());
            let hop = Hop { host, target: &target, url, credentials, public_only };
            response = self.exchange(&hop, request).await?;
            if !is_redirect(response.status()) {
                response.has_moved = has_moved;
                return Ok(response);
            }
            visited.push(next);
        }
    }

    /// Opens connections to the URL's origin before they are needed: at most `most`, and one if the
    /// server chooses HTTP/2. One place is left to requests. Failures are left to the first request.
    /// If it is dropped before it is complete, its tasks end with the runtime.
    pub async fn prepare(&self, url: &str, most: usize) {
        let Ok(host) = Target::split(url).and_then(|target| self.host(target.origin)) else {
            return;
        };
        let mut openings = JoinSet::new();
        for _ in 0..most.min(self.0.shared.options.connections_per_host) {
            let (host, url) = (Arc::clone(&host), url.to_owned());
            openings.spawn(async move {
                let Some(mut place) = host.state.try_place() else { return };
                if let Ok(channel) = host.open(&mut place, &url, false).await {
                    host.give_back(channel);
                }
            });
        }
        openings.join_all().await;
    }

    /// Whether the URL's origin is paused at its request.
    pub fn is_paused(&self, url: &str) -> bool {
        let host = Target::split(url).and_then(|target| self.host(target.origin));
        host.is_ok_and(|host| self.0.shared.is_paused(&host.state))
    }

    /// Pauses all requests to the URL's origin.
    pub(crate) fn pause(&self, url: &str, pause: Duration) {
        if let Ok(host) = Target::split(url).and_then(|target| self.host(target.origin)) {
            self.0.shared.pause(&host.state, pause);
        }
    }

    /// Whether this is the first report that the URL's origin cannot be reached.
    pub(crate) fn is_first_report(&self, url: &str) -> bool {
        Target::split(url)
            .and_then(|target| self.host(target.origin))
            .is_ok_and(|host| !host.state.reported.swap(true, Relaxed))
    }

    /// Sends no more requests to the URL's origin before earlier ones are answered, since an answer
    /// was another resource.
    pub fn stop_pipelining(&self, url: &str) {
        if let Ok(host) = Target::split(url).and_then(|target| self.host(target.origin)) {
            host.state.stop_pipelining("an answer was another resource");
        }
    }

    /// Sets the least time between the starts of two requests to the URL's origin, for all clients
    /// of the same [`Shared`]. An earlier, longer interval remains in force.
    pub fn set_min_interval(&self, url: &str, interval: Duration) {
        if let Ok(host) = Target::split(url).and_then(|target| self.host(target.origin)) {
            Shared::set_interval(&host.state, interval);
        }
    }

    fn host(&self, origin_text: &str) -> Result<Arc<Host>, Error> {
        let mut hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = hosts.get(origin_text) {
            return Ok(host.clone());
        }
        let mut origin = Origin::parse(origin_text)?;
        let options = &self.0.shared.options;
        if origin.credentials.is_none() {
            origin.credentials = options.credentials.find(&origin.key).cloned();
        }
        let proxy =
            options.proxies.for_origin(&origin).filter(|proxy| proxy.is_http() && !origin.https);
        let forwards = proxy.and_then(|proxy| {
            let authority = Authority::try_from(origin.host_header.as_bytes()).ok()?;
            Some(Forwards { authority, authorization: proxy.authorization() })
        });
        if hosts.len() >= MAX_ORIGINS {
            hosts.retain(|_, host| Arc::strong_count(host) > 1);
        }
        let state = self.0.shared.host(&origin.key);
        let shared = self.0.shared.clone();
        let host = Arc::new(Host::new(shared, state, origin, forwards));
        hosts.insert(origin_text.into(), host.clone());
        Ok(host)
    }

    /// Sends one request to a server, without redirects. A request in a row is repeated alone, unless
    /// the answer has a body that the caller can verify, or asks for a pause.
    async fn exchange(&self, hop: &Hop<'_>, request: &Request<'_>) -> Result<Response, Error> {
        let host = hop.host;
        let mut wanted = Wanted::Any;
        if request.may_be_pipelined() && host.forwards.is_none() {
            wanted = Wanted::InRow;
        }
        loop {
            let (response, is_in_row) = self.exchange_by(wanted, hop, request).await?;
            let checked = response.check(request);
            let asks_for_pause = matches!(
                response.status(),
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
            );
            if !is_in_row || asks_for_pause {
                return checked.map(|()| response);
            }
            let is_useful = response.status() == StatusCode::OK && checked.is_ok();
            host.state.note_use(is_useful);
            if is_useful {
                return Ok(response);
            }
            response.discard().await;
            self.0.shared.count_retry();
            wanted = Wanted::Any;
        }
    }

    /// Sends a request on such a connection; also returns whether it was sent in a row.
    async fn exchange_by(
        &self,
        mut wanted: Wanted,
        hop: &Hop<'_>,
        request: &Request<'_>,
    ) -> Result<(Response, bool), Error> {
        let Hop { host, target, url, credentials, public_only } = *hop;
        let shared = &self.0.shared;
        let path = target.path_and_query()?;
        let mut place = shared.enter(&host.state).await;
        let mut overtaken = 0;
        let repeatable = request.method.is_some()
            || request.post.is_none_or(|post| post.idempotency_key.is_some());
        loop {
            let kept = host.take(&mut place, wanted).await;
            let reused = kept.is_some();
            let mut channel = if let Some(channel) = kept {
                channel
            } else {
                self.close_expired();
                host.open(&mut place, url, public_only).await?
            };
            let is_in_row = channel.is_pipelined();
            if !channel.is_http2() && !is_in_row {
                place.alone(&host.state).await;
            }
            // The wait for a connection may have been long.
            shared.wait_while_paused(&host.state).await;
            let target = (path.clone(), channel.is_http2());
            let mut message = self.message(host, target, request, credentials, url)?;
            let method = message.method().clone();
            let span = client_span(&method, url);
            carry(&span, message.headers_mut());
            shared.count_request();
            match channel.send(message, &shared.options).instrument(span.clone()).await {
                Ok(answer) => {
                    span.record("http.response.status_code", answer.status().as_u16());
                    // Servers with TLS answer a request without TLS with this status.
                    let may_need_tls = answer.status() == StatusCode::BAD_REQUEST;
                    if !host.tls_is_known.swap(true, Relaxed)
                        && may_need_tls
                        && speaks_tls(shared, &host.origin, url, public_only).await
                    {
                        return Err(Error::needs_tls(url));
                    }
                    let (head, body) = answer.into_parts();
                    let url = without_userinfo(url.split_once('#').map_or(url, |(url, _)| url));
                    tracing::debug!(%method, %url, status = head.status.as_u16(), "answered");
                    let response =
                        Response::new(head, body, url, host.clone(), channel, place, request);
                    return Ok((response, is_in_row));
                }
                Err(failure) => {
                    span.record("otel.status_code", "ERROR");
                    if channel.has_ended(&failure) {
                        host.forget(&channel);
                    }
                    if is_in_row {
                        let fault = match failure {
                            Failure::Row(fault) => fault,
                            _ => RowFault::Irregular,
                        };
                        host.state.note_fault(fault);
                        shared.count_retry();
                        overtaken += 1;
                        if fault != RowFault::Overtaken || overtaken > OVERTAKEN_MAX {
                            wanted = Wanted::Any;
                        }
                        continue;
                    }
                    wanted = Wanted::New;
                    if channel.is_sent_back(&failure) {
                        host.state.set_protocol(Protocol::Http1);
                        host.forget(&channel);
                        shared.count_retry();
                        continue;
                    }
                    let was_before_any_answer = channel.was_before_any_answer(&failure);
                    if reused && repeatable && was_before_any_answer {
                        shared.count_retry();
                        continue;
                    }
                    let may_need_tls = was_before_any_answer;
                    if channel.is_answered_in_tls()
                        || may_need_tls
                            && !host.tls_is_known.swap(true, Relaxed)
                            && speaks_tls(shared, &host.origin, url, public_only).await
                    {
                        return Err(Error::needs_tls(url));
                    }
                    return Err(failed(failure, channel.received(), url));
                }
            }
        }
    }

    fn message(
        &self,
        host: &Host,
        (path, is_http2): (PathAndQuery, bool),
        request: &Request<'_>,
        credentials: Option<&Authorization>,
        url: &str,
    ) -> Result<http::Request<Full<Bytes>>, Error> {
        let mut message = http::Request::new(
            request.post.map_or_else(Full::default, |post| Full::new(post.body.clone())),
        );
        if request.post.is_some() {
            *message.method_mut() = request.method.cloned().unwrap_or(Method::POST);
        } else if request.head {
            *message.method_mut() = Method::HEAD;
        }
        let whole = |scheme, authority: &[u8], path| {
            Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build().map_err(
                |e| Error::new(ErrorKind::Url, url, "the URL cannot be sent").with_cause(e),
            )
        };
        *message.uri_mut() = match &host.forwards {
            // The header `Host` is in the URI [rfc9113 §8.3.1].
            None if is_http2 => whole(Scheme::HTTPS, host.origin.host_header.as_bytes(), path)?,
            None => Uri::from(path),
            Some(proxy) => whole(Scheme::HTTP, proxy.authority.as_str().as_bytes(), path)?,
        };
        let headers = message.headers_mut();
        if let Some(login) = host.forwards.as_ref().and_then(|proxy| proxy.authorization.as_ref()) {
            headers.insert(header::PROXY_AUTHORIZATION, login.value().clone());
        }
        if !is_http2 {
            headers.insert(header::HOST, host.origin.host_header.clone());
        }
        headers.insert(header::USER_AGENT, self.0.user_agent.clone());
        let text = |value: &str| {
            HeaderValue::from_str(value).map_err(|e| {
                Error::new(ErrorKind::Header, url, format!("{value:?} cannot be sent as a header"))
                    .with_cause(e)
            })
        };
        let range = request.usable_range();
        let gzip = request.accept_gzip && range.is_none() && self.0.shared.options.gzip;
        headers.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static(if gzip { "gzip" } else { "identity" }),
        );
        if let Some(post) = request.post {
            headers.insert(header::CONTENT_TYPE, text(post.content_type)?);
            if let Some(key) = post.idempotency_key {
                headers.insert("idempotency-key", text(key)?);
            }
        }
        if let Some(etag) = request.if_none_match {
            headers.insert(header::IF_NONE_MATCH, text(etag)?);
        }
        if let Some(date) = request.if_modified_since {
            headers.insert(header::IF_MODIFIED_SINCE, text(date)?);
        }
        if let Some(accept) = request.accept {
            headers.insert(header::ACCEPT, text(accept)?);
        }
        if let Some(id) = request.last_event_id {
            headers.insert("last-event-id", text(id)?);
        }
        if request.no_cache {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        if let Some((offset, etag)) = range {
            headers.insert(header::RANGE, text(&format!("bytes={offset}-"))?);
            headers.insert(header::IF_RANGE, text(etag)?);
        }
        if let Some(credentials) = credentials {
            headers.insert(header::AUTHORIZATION, credentials.value().clone());
        }
        if let Some(signer) = &self.0.shared.options.signer {
            signer.sign(headers, &host.origin.host_header, SystemTime::now(), url)?;
        }
        Ok(message)
    }

    /// Closes expired idle connections. Called when a connection is made, not for every request.
    fn close_expired(&self) {
        let keep_alive = self.0.shared.options.keep_alive;
        for host in self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner).values() {
            host.close_idle(keep_alive);
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("shared", &self.0.shared).finish_non_exhaustive()
    }
}
