//! The part of the server that answers a request.

use crate::admin;
use crate::api;
use crate::connection::origin_form::HasBody;
use crate::message::body::ResponseBody;
use crate::message::respond::{Answer, problem, see_other, text, try_later};
use crate::routes::{
    callback, document, entity, file, former, health, hub, memento, timegate, timemap, topic,
};
use crate::run::route::{Route, role_of, route};
use crate::run::shared::{Part, Shared};
use crate::site::current::CurrentSite;
use crate::site::resource;
use crate::site::served::Site;
use abreast_core::NodeRole;
use abreast_hub::Client;
use abreast_net::KeyDirectory;
use abreast_source::projection::Topic;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW,
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, HOST, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use hyper::body::{Body as _, Incoming};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

/// Most bytes of a request target: twice the longest published URI.
const MAX_TARGET: usize = 16 * 1024;

/// How long verifiers may keep the keys that sign requests: so long a removed key remains valid.
const KEYS_MAY_BE_CACHED: &str = "max-age=3600";

/// Answers a request by the part of the server to which its path belongs.
pub(super) async fn answer(
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
    } else if reader
        && (!request.body().is_end_stream() || request.extensions().get::<HasBody>().is_some())
    {
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
