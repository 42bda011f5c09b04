//! `/SET/v0.1/subscribe`: subscriptions of ResourceSync 0.1 receivers with a callback
//! [rs-0.1 §5.2.2].

use super::hub::{body_of, header, sent};
use crate::message::respond::{Answer, problem, text};
use crate::site::served::{Site, SiteHub};
use abreast_hub::Client;
use abreast_source::projection::Topic;
use abreast_websub::MAX_FORM_LENGTH;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use std::sync::Arc;

/// The topic to which clients subscribe at this path, if notifications are delivered.
pub(crate) fn topic_at(site: &Site, path: &str) -> Option<Topic> {
    site.hub.as_ref().filter(|hub| hub.serves)?;
    site.publisher.callback_topic_at(path.strip_prefix('/')?)
}

/// Whether a path has the form for subscriptions to a set; the set may be missing.
pub(crate) fn is_path(path: &str) -> bool {
    path.ends_with("/v0.1/subscribe")
}

/// The response if the topic or the hub does not exist.
pub(crate) fn not_offered() -> Answer {
    problem(StatusCode::NOT_FOUND, "notifications are not delivered here")
}

/// Requests to the address of a topic.
pub(crate) async fn answer(
    site: &Arc<Site>,
    topic: &Topic,
    request: Request<Incoming>,
    client: Client,
) -> Answer {
    let Some(hub) = &site.hub else {
        return not_offered();
    };
    match *request.method() {
        Method::POST => {
            let content_type = header(request.headers(), &CONTENT_TYPE);
            match body_of(request, MAX_FORM_LENGTH).await {
                Ok(body) => sent(hub.hub.call_back(&topic.url, &content_type, &body, client).await),
                Err(answer) => answer,
            }
        }
        Method::GET | Method::HEAD => text("text/plain; charset=utf-8", page(hub, topic)),
        _ => {
            let mut answer =
                problem(StatusCode::METHOD_NOT_ALLOWED, "callbacks are subscribed by POST");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
            answer
        }
    }
}

/// A page for people.
fn page(hub: &SiteHub, topic: &Topic) -> String {
    format!(
        "HTTP callbacks of ResourceSync 0.1: change sets are posted to the addresses that ask for them.\n\
         Subscribe by POST of the form callbackURI=URL; optional: secret, which signs deliveries (X-Hub-Signature), and lease_seconds.\n\
         The callback is asked by GET with hub.mode, hub.topic and hub.challenge; it confirms by answering with the challenge.\n\
         End it with mode=unsubscribe, which is confirmed in the same way, or by answering 410 to a delivery.\n\
         State of a subscription: {hub}?callback=URL, the callback's URL percent-encoded.\n\
         Topic: {topic}\n",
        hub = hub.hub.options().url,
        topic = topic.url,
    )
}
