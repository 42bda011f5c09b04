//! The hub's API: topics, targets and actions on them.

use super::answers::{blocking, json};
use super::context::Context;
use super::hub_model::{TargetAnswer, TargetDetails, TopicAnswer};
use super::intake::parameter;
use super::problem::{Problem, ProblemKind};
use super::visible::VisibleSets;
use crate::message::respond::Answer;
use abreast_core::hub::TargetId;
use abreast_core::{LogError, Offset, TopicId};
use abreast_hub::Hub;
use http::StatusCode;
use serde::Serialize;
use std::collections::HashMap;

/// Entries of a page, unless the request has another number.
const PAGE: u64 = 100;
/// Most rows of an answer.
const MAX_PAGE: u64 = 1_000;

fn hub(context: &Context<'_>) -> Result<Hub, Problem> {
    let hub = context
        .site
        .hub
        .as_ref()
        .ok_or_else(|| Problem::new(ProblemKind::NotFound, "this server has no hub"))?;
    Ok(hub.hub.clone())
}

fn number(query: Option<&str>, known: &[&str], name: &str) -> Result<Option<u64>, Problem> {
    let wrong = || Problem::new(ProblemKind::Query, format!("`{name}` is not a whole number"));
    let text = parameter(query, known, name)?;
    text.map(|text| {
        text.parse().ok().filter(|number| i64::try_from(*number).is_ok()).ok_or_else(wrong)
    })
    .transpose()
}

/// Parses the parameters `after` and `limit` of a page.
fn page(query: Option<&str>) -> Result<(i64, usize), Problem> {
    const KNOWN: &[&str] = &["after", "limit"];
    let after = number(query, KNOWN, "after")?.unwrap_or_default();
    let limit = number(query, KNOWN, "limit")?.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::new(
            ProblemKind::Query,
            format!("`limit` is not between 1 and {MAX_PAGE}"),
        ));
    }
    Ok((after.cast_signed(), limit as usize))
}

fn no_target() -> Problem {
    Problem::new(ProblemKind::NotFound, "there is no such target")
        .help("it may have ended, or never existed")
}

pub(super) async fn overview(context: &Context<'_>) -> Result<Answer, Problem> {
    #[derive(Serialize)]
    struct Overview {
        url: String,
        /// Whether everyone may subscribe.
        serves: bool,
        topics: u64,
        targets: u64,
        unverified: u64,
        in_flight: u64,
        /// Deliveries that wait for their next attempt.
        waiting: u64,
        delivered: u64,
        failed: u64,
        given_up: u64,
        stored_bytes: u64,
        /// Messages about other hubs that do not accept notifications, with help.
        failing_hubs: Vec<String>,
    }
    let hub = hub(context)?;
    let serves = context.site.hub.as_ref().is_some_and(|hub| hub.serves);
    let overview = blocking(move || {
        let (metrics, sizes) = (hub.metrics(), hub.sizes()?);
        Ok(Overview {
            url: hub.options().url.clone(),
            serves,
            topics: metrics.topics,
            targets: metrics.targets,
            unverified: metrics.unverified,
            in_flight: metrics.in_flight,
            waiting: metrics.waiting,
            delivered: metrics.delivered,
            failed: metrics.failed,
            given_up: metrics.given_up,
            stored_bytes: sizes.body_bytes,
            failing_hubs: hub.failing_hubs().iter().map(ToString::to_string).collect(),
        })
    });
    Ok(json(StatusCode::OK, &overview.await?))
}

pub(super) async fn topics(context: &Context<'_>, query: Option<&str>) -> Result<Answer, Problem> {
    #[derive(Serialize)]
    struct Topics {
        topics: Vec<TopicAnswer>,
        /// Value of `after` for the next page; absent on the last page.
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<i64>,
    }
    let (hub, (after, limit)) = (hub(context)?, page(query)?);
    let own = own_topics(context);
    let mut found = blocking(move || match own {
        // One more than requested, because the hub removes its internal topic.
        None => Ok(hub.topics(TopicId(after), limit + 1)?),
        Some(urls) => {
            let mut found = Vec::new();
            for id in urls.iter().filter_map(|url| hub.topic(url)).filter(|id| id.0 > after) {
                found.extend(hub.store().topic(id)?);
            }
            found.sort_unstable_by_key(|topic| topic.id.0);
            Ok(found)
        }
    })
    .await?;
    found.truncate(limit);
    let next = found.last().map(|topic| topic.id.0).filter(|_| found.len() == limit);
    Ok(json(
        StatusCode::OK,
        &Topics { topics: found.into_iter().map(TopicAnswer::from).collect(), next },
    ))
}

/// URLs of the topics that the request may read; `None` if it may read all.
fn own_topics(context: &Context<'_>) -> Option<Vec<String>> {
    if context.seen == VisibleSets::All {
        return None;
    }
    let publisher = &context.site.publisher;
    let seen = publisher.sets().iter().filter(|set| context.seen.has(&set.slug));
    Some(seen.flat_map(|set| publisher.topic_urls(set)).collect())
}

pub(super) async fn targets(
    context: &Context<'_>,
    topic: i64,
    query: Option<&str>,
) -> Result<Answer, Problem> {
    #[derive(Serialize)]
    struct Targets {
        targets: Vec<TargetAnswer>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<i64>,
    }
    let (hub, (after, limit)) = (hub(context)?, page(query)?);
    let answer = blocking(move || {
        let topic = hub.store().topic(TopicId(topic))?;
        let topic = topic.ok_or_else(|| {
            Problem::new(ProblemKind::NotFound, "there is no such topic")
                .help("GET /api/v1/hub/topics lists them")
        })?;
        let found = hub.targets(Some(topic.id), TargetId(after), limit)?;
        let next = (found.len() == limit).then(|| found.last().map(|target| target.id.0)).flatten();
        let targets = found
            .into_iter()
            .map(|target| TargetAnswer::of(&**hub.store(), target, &topic.url, topic.head));
        let targets = targets.collect::<Result<_, _>>()?;
        Ok(Targets { targets, next })
    });
    Ok(json(StatusCode::OK, &answer.await?))
}

pub(super) async fn target(
    context: &Context<'_>,
    id: i64,
    query: Option<&str>,
) -> Result<Answer, Problem> {
    let hub = hub(context)?;
    let dead_after = Offset(number(query, &["dead_after"], "dead_after")?.unwrap_or_default());
    let found = blocking(move || {
        let target = hub.target(TargetId(id))?.ok_or_else(no_target)?;
        Ok(TargetDetails::read(&**hub.store(), target, dead_after)?)
    });
    Ok(json(StatusCode::OK, &found.await?))
}

pub(super) async fn replay(
    context: &Context<'_>,
    id: i64,
    query: Option<&str>,
) -> Result<Answer, Problem> {
    let hub = hub(context)?;
    let after = number(query, &["after"], "after")?.map(Offset);
    let replayed = blocking(move || {
        let target = match after {
            Some(after) => hub.replay(TargetId(id), after)?,
            None => hub.attempt_now(TargetId(id))?,
        };
        let target = target.ok_or_else(no_target)?;
        Ok(TargetAnswer::read(&**hub.store(), target)?)
    });
    Ok(json(StatusCode::OK, &replayed.await?))
}

pub(super) async fn end(
    context: &Context<'_>,
    id: i64,
    query: Option<&str>,
) -> Result<Answer, Problem> {
    let hub = hub(context)?;
    let reason = parameter(query, &["reason"], "reason")?;
    let ended = blocking(move || {
        let target = hub.target(TargetId(id))?.ok_or_else(no_target)?;
        let told = TargetAnswer::read(&**hub.store(), target)?;
        if hub.end(TargetId(id), reason.as_deref())? { Ok(told) } else { Err(no_target()) }
    });
    Ok(json(StatusCode::OK, &ended.await?))
}

/// URLs of topics; each is read once from the store.
pub(crate) struct TopicUrls<'h> {
    hub: &'h Hub,
    known: HashMap<TopicId, String>,
}

impl<'h> TopicUrls<'h> {
    pub(crate) fn new(hub: &'h Hub) -> Self {
        Self { hub, known: HashMap::new() }
    }

    pub(crate) fn of(&mut self, id: TopicId) -> Result<String, LogError> {
        if let Some(url) = self.known.get(&id) {
            return Ok(url.clone());
        }
        let url = self.hub.store().topic(id)?.map(|topic| topic.url).unwrap_or_default();
        self.known.insert(id, url.clone());
        Ok(url)
    }
}
