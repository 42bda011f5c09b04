//! Topics: the last notification, or all further notifications as a stream
//! [rs-change-notification §4.1, html-events §9.2].

use crate::limits::places::Place;
use crate::message::body::ResponseBody;
use crate::message::negotiate;
use crate::message::respond::{Answer, Content, Dated, Representation, problem, try_later};
use crate::observe::followers::Following;
use crate::site::served::{Site, SiteHub};
use abreast_core::Offset;
use abreast_hub::{Client, Events};
use abreast_source::projection::Topic;
use abreast_source::publish::{PublishError, TopicDocument};
use abreast_websub::{write_comment, write_event, write_retry};
use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LINK, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Interval of keep-alive lines in an idle stream.
const ALIVE: Duration = Duration::from_secs(15);
/// Time after which a client should reconnect when a stream has ended.
const RETRY: Duration = Duration::from_secs(2);
/// The offset after which a client wants to continue [html-events §9.2].
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(crate) async fn answer(
    site: &Arc<Site>,
    published: Topic,
    (method, client): (&Method, &Client),
    headers: &HeaderMap,
    stop: watch::Receiver<bool>,
) -> Answer {
    let not_there =
        || problem(StatusCode::NOT_FOUND, "no notifications are published for this set");
    let Some(hub) = &site.hub else { return not_there() };
    if wants_events(headers) {
        return events_of((site, hub), &published.url, (method, client), headers, stop).await;
    }
    let (reader, topics) = (Arc::clone(site), Arc::clone(hub.hub.store()));
    let read = tokio::task::spawn_blocking(move || {
        reader.publisher.last_notification(&*topics, &published)
    })
    .await;
    let document = match read {
        Ok(Ok(document)) => document,
        Ok(Err(PublishError::NotFound)) => return not_there(),
        Ok(Err(error)) => return try_later(&format!("the topic cannot be read: {error}"), 10),
        Err(error) => return try_later(&format!("the topic cannot be read: {error}"), 10),
    };
    answer_with(document, method, headers)
}

/// The last notification of a removed set, which reports its removal. Hubs that verify
/// notifications find it here.
pub(crate) async fn removed(
    site: &Arc<Site>,
    path: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Answer {
    let not_there = || problem(StatusCode::NOT_FOUND, "there is no such set");
    let Some(hub) = &site.hub else { return not_there() };
    let url = format!("{}{path}", site.publisher.urls().base());
    let Some(topic) = hub.hub.topic(&url) else { return not_there() };
    let (reader, topics) = (Arc::clone(site), Arc::clone(hub.hub.store()));
    match tokio::task::spawn_blocking(move || reader.publisher.removed_topic(&*topics, topic, &url))
        .await
    {
        Ok(Ok(document)) => answer_with(document, method, headers),
        Ok(Err(PublishError::NotFound)) => not_there(),
        Ok(Err(error)) => try_later(&format!("the topic cannot be read: {error}"), 10),
        Err(error) => try_later(&format!("the topic cannot be read: {error}"), 10),
    }
}

fn answer_with(document: TopicDocument, method: &Method, headers: &HeaderMap) -> Answer {
    let mut more = vec![
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (VARY, HeaderValue::from_static("Accept")),
    ];
    more.extend(HeaderValue::from_str(&document.links).ok().map(|links| (LINK, links)));
    Representation {
        length: document.body.len() as u64,
        content: Content::Memory(document.body),
        tag: format!("\"{}\"", document.offset.unwrap_or_default().0),
        modified: document.time.map(|time| time.as_micros() / 1_000_000),
        content_type: HeaderValue::from_str(&document.media_type)
            .unwrap_or_else(|_| HeaderValue::from_static("application/xml")),
        dated: Dated::Coarse,
        more,
    }
    .answer(method, headers)
}

/// Whether the client prefers a stream of notifications.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    negotiate::prefers(headers, "text/event-stream", "application/xml")
}

/// A topic's notifications as Server-Sent Events; the id of each event is its offset.
pub(crate) async fn events_of(
    (site, hub): (&Site, &SiteHub),
    topic: &str,
    (method, client): (&Method, &Client),
    headers: &HeaderMap,
    stop: watch::Receiver<bool>,
) -> Answer {
    // The hub's internal log is not a public topic.
    if abreast_websub::check_topic(topic).is_err() {
        return problem(StatusCode::NOT_FOUND, "this hub knows no such topic");
    }
    let after =
        match headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or_default().trim()) {
            None | Some("") => None,
            Some(id) => match id.parse() {
                Ok(offset) => Some(Offset(offset)),
                Err(_) => {
                    return problem(
                        StatusCode::BAD_REQUEST,
                        "Last-Event-ID is not a number that this server gave",
                    );
                }
            },
        };
    let (asked, topic) = (hub.hub.clone(), topic.to_owned());
    let read = {
        let topic = topic.clone();
        move || asked.events(&topic, after)
    };
    let events = match tokio::task::spawn_blocking(read).await {
        Ok(Ok(Some(events))) => events,
        Ok(Ok(None)) => return problem(StatusCode::NOT_FOUND, "this hub knows no such topic"),
        Ok(Err(error)) => return try_later(&format!("the topic cannot be read: {error}"), 10),
        Err(error) => return try_later(&format!("the topic cannot be read: {error}"), 10),
    };
    let sent = Arc::new(AtomicU64::new(events.after().0));
    let following = Following::Stream(topic, Arc::clone(&sent));
    let body = if method == Method::HEAD {
        ResponseBody::empty()
    } else {
        let Some(place) = site.memory.streams.try_enter(client) else {
            return try_later(
                "too many event streams of this client, or of all; a callback at the hub takes no place",
                60,
            );
        };
        event_stream(events, stop, (place, sent))
    };
    let mut answer = Response::new(body);
    answer.extensions_mut().insert(following);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // A proxy that buffers responses would never pass on the events.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    answer
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// The bytes of the stream. The first event contains the current offset, so that a client that is
/// disconnected before the first notification can continue from there.
fn event_stream(
    events: Events,
    stop: watch::Receiver<bool>,
    (place, sent): (Place, Arc<AtomicU64>),
) -> ResponseBody {
    let mut first = Vec::new();
    write_retry(&mut first, RETRY);
    first.extend_from_slice(format!("id: {}\n\n", events.after().0).as_bytes());
    let begun = stream::once(async move { Ok(Frame::data(Bytes::from(first))) });
    let held = (place, sent);
    let going = stream::unfold((events, stop, held), |(mut events, mut stop, held)| async move {
        let mut out = Vec::new();
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return None,
            next = events.next() => match next {
                Ok(Some(event)) => {
                    write_event(&mut out, &event.offset.0.to_string(), &event.media_type, &event.body);
                    held.1.store(event.offset.0, Ordering::Relaxed);
                }
                Ok(None) => return None,
                Err(error) => return Some((Err(io::Error::other(error)), (events, stop, held))),
            },
            () = tokio::time::sleep(ALIVE) => {
                write_comment(&mut out, "still here");
                out.push(b'\n');
            }
        }
        Some((Ok(Frame::data(Bytes::from(out))), (events, stop, held)))
    });
    ResponseBody::Parts(StreamBody::new(stream::StreamExt::chain(begun, going)).boxed_unsync())
}
