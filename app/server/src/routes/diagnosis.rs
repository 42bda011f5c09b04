//! `/hub?callback=URL`: the progress of a subscription, for clients that know its callback.

use crate::api::TopicUrls;
use crate::api::hub_model::{EndedAnswer, TargetDetails};
use crate::message::negotiate;
use crate::message::respond::{Answer, problem, text, try_later};
use crate::site::served::SiteHub;
use abreast_core::hub::TargetKind;
use abreast_core::{LogError, Offset, TopicId};
use abreast_hub::Hub;
use abreast_webtypes::count;
use http::header::VARY;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use std::fmt::Write as _;
use tokio::sync::Semaphore;

/// Most parallel queries, because each reads the store.
static LOOKS: Semaphore = Semaphore::const_new(2);
/// Topics that are searched if the request does not select one.
const MOST_TOPICS: usize = 1_000;
/// Most subscriptions in a response.
const MOST_TOLD: usize = 100;
/// Most ended subscriptions that are searched, from the newest.
const MOST_ENDED: usize = 1_000;

/// The callback and the topic of a query about subscriptions.
pub(crate) struct SubscriptionQuery {
    callback: String,
    topic: Option<String>,
}

/// Parses a query about subscriptions; `None` for other queries.
pub(crate) fn asked(query: Option<&str>) -> Option<SubscriptionQuery> {
    let (mut callback, mut topic) = (None, None);
    for (name, value) in url::form_urlencoded::parse(query?.as_bytes()) {
        match &*name {
            "callback" => callback = Some(value.into_owned()),
            "topic" => topic = Some(value.into_owned()),
            _ => {}
        }
    }
    Some(SubscriptionQuery { callback: callback?, topic })
}

#[derive(Serialize)]
struct Diagnosis {
    subscriptions: Vec<TargetDetails>,
    ended: Vec<EndedAnswer>,
    /// The hub has more topics than are searched.
    #[serde(skip)]
    more: bool,
}

/// Answers with text, or with JSON for clients that prefer it.
pub(crate) async fn answer(hub: &SiteHub, asked: SubscriptionQuery, headers: &HeaderMap) -> Answer {
    let Ok(_place) = LOOKS.try_acquire() else {
        return try_later("others ask for their subscriptions at this moment", 1);
    };
    let hub = hub.hub.clone();
    let found = match tokio::task::spawn_blocking(move || find(&hub, &asked)).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            return try_later(&format!("the subscriptions cannot be read: {error}"), 10);
        }
        Err(error) => return try_later(&format!("the subscriptions cannot be read: {error}"), 10),
    };
    if found.subscriptions.is_empty() && found.ended.is_empty() {
        let detail = if found.more {
            "this hub has many topics: name one, &topic=URL"
        } else {
            "there is no subscription with this callback: it was not confirmed yet, or not asked for"
        };
        return problem(StatusCode::NOT_FOUND, detail);
    }
    let mut answer = if negotiate::prefers(headers, "application/json", "text/plain") {
        text("application/json", serde_json::to_vec(&found).unwrap_or_default())
    } else {
        text("text/plain; charset=utf-8", describe(&found))
    };
    answer.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    answer
}

fn find(hub: &Hub, asked: &SubscriptionQuery) -> Result<Diagnosis, LogError> {
    let (mut topics, mut more) = (Vec::new(), false);
    if let Some(url) = &asked.topic {
        topics.extend(hub.topic(url));
    } else {
        topics.extend(hub.topics(TopicId(0), MOST_TOPICS)?.into_iter().map(|topic| topic.id));
        more = hub.metrics().topics > topics.len() as u64;
    }
    let mut subscriptions = Vec::new();
    for topic in &topics {
        let target = hub.store().find_target(*topic, &asked.callback, TargetKind::Subscription)?;
        // With the present progress from memory.
        let Some(target) = target.map(|target| hub.target(target.id)).transpose()?.flatten() else {
            continue;
        };
        subscriptions.push(TargetDetails::read(&**hub.store(), target, Offset(0))?);
        if subscriptions.len() == MOST_TOLD {
            break;
        }
    }
    let (mut ended, mut urls) = (Vec::new(), TopicUrls::new(hub));
    for end in hub.ended(i64::MAX, MOST_ENDED)? {
        let meant = end.address == asked.callback
            && end.kind == TargetKind::Subscription
            && (asked.topic.is_none() || topics.contains(&end.topic));
        if meant && ended.len() < MOST_TOLD {
            let topic = urls.of(end.topic)?;
            ended.push(EndedAnswer::new(end, topic));
        }
    }
    Ok(Diagnosis { subscriptions, ended, more })
}

fn describe(found: &Diagnosis) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for TargetDetails { target, last_attempts, dead_letters } in &found.subscriptions {
        let _ = writeln!(text, "topic {}", target.topic);
        let _ = writeln!(
            text,
            "  {}: {} of {} taken",
            target.state,
            target.cursor,
            abreast_webtypes::count(target.head, "notification")
        );
        if let Some(until) = &target.lease_until {
            let _ = writeln!(text, "  lease until {until}");
        }
        let _ = writeln!(text, "  {}", if target.signed { "signed" } else { "not signed" });
        if let Some(next) = &target.next_at {
            let attempts = count(target.attempts, "failed attempt");
            let _ = writeln!(text, "  {attempts}, the next not before {next}");
        }
        for attempt in last_attempts {
            let status =
                attempt.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
            let error = attempt.error.as_deref().unwrap_or("taken");
            let (time, offset, took) = (&attempt.time, attempt.offset, attempt.took_ms);
            let _ =
                writeln!(text, "  {time}  notification {offset}: {status}, {error} ({took} ms)");
        }
        for dead in dead_letters {
            let _ = writeln!(
                text,
                "  {}  {} to {} given up: {}",
                dead.time, dead.first, dead.last, dead.error
            );
        }
        text.push('\n');
    }
    for ended in &found.ended {
        let _ = writeln!(text, "topic {}\n  ended {}: {}\n", ended.topic, ended.time, ended.why);
    }
    text
}
