//! `/hub`: receives subscriptions and notifications; `/hub/events` sends a topic as a stream to
//! clients without a callback.

use super::diagnosis;
use super::topic::events_of;
use crate::api;
use crate::message::respond::{Answer, problem, text};
use crate::site::served::{Site, SiteHub};
use abreast_hub::{Client, HubAnswer, HubRequest, Publisher};
use abreast_websub::MAX_FORM_LENGTH;
use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, LINK};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Time limit for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(60);

/// Whether a path belongs to the hub.
pub(crate) fn is_path(path: &str) -> bool {
    path == "/hub"
}

/// Answers requests to the hub itself.
pub(crate) async fn answer(site: &Arc<Site>, request: Request<Incoming>, client: Client) -> Answer {
    let Some(hub) = site.hub.as_ref().filter(|hub| hub.serves) else {
        return problem(StatusCode::NOT_FOUND, "there is no hub at this address");
    };
    match *request.method() {
        Method::POST => post(site, hub, request, client).await,
        Method::GET | Method::HEAD => match diagnosis::asked(request.uri().query()) {
            Some(asked) => diagnosis::answer(hub, asked, request.headers()).await,
            None => text("text/plain; charset=utf-8", page(hub)),
        },
        _ => {
            let mut answer =
                problem(StatusCode::METHOD_NOT_ALLOWED, "a hub answers GET, HEAD and POST");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
            answer
        }
    }
}

async fn post(
    site: &Arc<Site>,
    hub: &SiteHub,
    request: Request<Incoming>,
    client: Client,
) -> Answer {
    let publisher = match api::may_publish(site, request.headers()) {
        Some(true) => Publisher::Token,
        Some(false) => {
            return refused(
                StatusCode::UNAUTHORIZED,
                "the token is not known, or does not permit to publish",
            );
        }
        None => Publisher::Anonymous,
    };
    let content_type = header(request.headers(), &CONTENT_TYPE);
    let links = abreast_net::values(request.headers(), LINK.as_str());
    let most = hub.hub.options().max_body.max(MAX_FORM_LENGTH);
    let body = match body_of(request, most).await {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    let client = client.as_publisher(publisher);
    sent(hub.hub.handle(HubRequest { content_type, links, body, client }).await)
}

/// Receives the body of a request; if it is too large or too slow, returns the answer.
pub(crate) async fn body_of(request: Request<Incoming>, most: usize) -> Result<Bytes, Answer> {
    let body = Limited::new(request.into_body(), most).collect();
    match tokio::time::timeout(BODY_TIME, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            let detail = format!("a request to this address has at most {most} bytes");
            Err(refused(StatusCode::PAYLOAD_TOO_LARGE, &detail))
        }
        Ok(Err(_)) => Err(refused(StatusCode::BAD_REQUEST, "the request broke off")),
        Err(_) => Err(refused(
            StatusCode::REQUEST_TIMEOUT,
            "the request's body did not come within a minute",
        )),
    }
}

/// Converts the hub's answer to a response.
pub(crate) fn sent(told: HubAnswer) -> Answer {
    let mut answer = text("text/plain; charset=utf-8", told.body);
    *answer.status_mut() =
        StatusCode::from_u16(told.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in told.headers {
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value))
        {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

/// The response closes the connection, because the rest of a body is not read.
fn refused(status: StatusCode, detail: &str) -> Answer {
    let mut answer = problem(status, detail);
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

pub(crate) fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// A page for people at the address of the hub.
fn page(hub: &SiteHub) -> String {
    let metrics = hub.hub.metrics();
    format!(
        "This is a WebSub hub.\n\
         Subscribe by POST with hub.mode, hub.topic and hub.callback; follow a topic without a callback at {url}/events?topic=URL.\n\
         What became of a subscription: {url}?callback=URL, the callback's URL percent-encoded.\n\
         Topics: {}; targets: {}.\n",
        metrics.topics,
        metrics.targets,
        url = hub.hub.options().url,
    )
}

/// `/hub/events?topic=URL`
pub(crate) async fn events(
    site: &Arc<Site>,
    query: Option<&str>,
    by: (&Method, &Client),
    headers: &HeaderMap,
    stop: watch::Receiver<bool>,
) -> Answer {
    let Some(hub) = site.hub.as_ref().filter(|hub| hub.serves) else {
        return problem(StatusCode::NOT_FOUND, "there is no hub at this address");
    };
    let mut pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let Some((_, topic)) = pairs.find(|(name, _)| name == "topic") else {
        return problem(
            StatusCode::BAD_REQUEST,
            "which topic? Ask for /hub/events?topic=URL, the URL percent-encoded",
        );
    };
    events_of((site, hub), &topic, by, headers, stop).await
}
