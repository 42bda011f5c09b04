//! The sets, and the head of each.

use super::answers::{blocking, json};
use super::context::Context;
use super::problem::{Problem, ProblemKind};
use crate::message::respond::Answer;
use crate::site::served::ServedSet;
use abreast_core::ChangeLog;
use abreast_source::SetState;
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Time limit for recording confirmed deletions; after it, the answer is `confirmed`.
const RECORDING: Duration = Duration::from_secs(10);
/// Interval of checks whether the deletions are recorded.
const CHECK: Duration = Duration::from_millis(50);

#[derive(Serialize)]
struct SetAnswer<'s> {
    name: &'s str,
    title: &'s str,
    /// `folder`, `entities` or `records`.
    kind: &'static str,
    capability_list: String,
    /// The common prefix of its resources' URIs.
    resources: String,
    head: u64,
    datetime: String,
    created: String,
    count: u64,
    /// The name of its [`SetState`].
    state: &'static str,
    /// Number of resources whose deletion is held.
    held_deletions: u64,
    /// URIs of some of these resources.
    held: Vec<String>,
}

pub(super) async fn all(context: &Context<'_>) -> Result<Answer, Problem> {
    #[derive(Serialize)]
    struct Sets<'s> {
        sets: Vec<SetAnswer<'s>>,
    }
    let seen =
        context.site.sets.all().iter().filter(|set| context.seen.has(&set.published.slug)).cloned();
    let (log, seen) = (Arc::clone(context.site.publisher.log()), seen.collect::<Vec<_>>());
    let answer = move || {
        let sets: Result<_, _> = seen.iter().map(|set| describe(&*log, set)).collect();
        Ok(json(StatusCode::OK, &Sets { sets: sets? }))
    };
    blocking(answer).await
}

pub(super) async fn one(context: &Context<'_>, slug: &str) -> Result<Answer, Problem> {
    let (log, target) =
        (Arc::clone(context.site.publisher.log()), Arc::clone(context.target(slug)?));
    blocking(move || Ok(json(StatusCode::OK, &describe(&*log, &target)?))).await
}

fn describe<'s>(log: &dyn ChangeLog, set: &'s ServedSet) -> Result<SetAnswer<'s>, Problem> {
    let published = &set.published;
    let head = log.head(published.id)?;
    let (watch, naming) = (&published.watch, published.urls.naming());
    let held = watch.held();
    Ok(SetAnswer {
        name: &published.slug,
        title: &set.title,
        kind: match published.representations.has_folder() {
            _ if naming.names_entities() => "entities",
            true => "folder",
            false => "records",
        },
        capability_list: published.urls.capability_list(),
        resources: published.urls.resources(),
        head: head.position.0,
        datetime: head.time.to_string(),
        created: head.created.to_string(),
        count: head.resources,
        state: SetState::of(log, published)?.name(),
        held_deletions: held.map_or(0, |held| held.missing),
        held: watch.held_names().iter().map(|key| naming.uri(key)).collect(),
    })
}

/// Confirms that the held deletions are intended. A new scan records them, also at another node; this
/// waits for its end within a limit.
pub(super) async fn confirm_deletions(
    context: &Context<'_>,
    slug: &str,
) -> Result<Answer, Problem> {
    let watch = Arc::clone(&context.target(slug)?.published.watch);
    let judgement = watch.judgement();
    let asked = Arc::clone(&watch);
    if !blocking(move || Ok(asked.confirm_held()?)).await? {
        return Err(Problem::new(ProblemKind::Conflict, "no deletion of this set is held"));
    }
    let until = Instant::now() + RECORDING;
    while watch.is_confirming() && Instant::now() < until {
        sleep(CHECK).await;
    }
    if watch.held().is_some() && watch.judgement() != judgement {
        let detail = "other deletions are held now, which are not confirmed";
        return Err(Problem::new(ProblemKind::Conflict, detail)
            .help("read the set, and confirm its held deletions again if they are intended"));
    }
    one(context, slug).await
}

/// Starts a scan of the set's folder or files, or a poll of the endpoint, also at another node, and
/// does not wait for the end.
pub(super) async fn scan(context: &Context<'_>, slug: &str) -> Result<Answer, Problem> {
    let watch = Arc::clone(&context.target(slug)?.published.watch);
    if !blocking(move || Ok(watch.request_scan()?)).await? {
        return Err(Problem::new(
            ProblemKind::Conflict,
            "this set has no folder and no endpoint that could be scanned",
        )
        .help("its changes come through the API"));
    }
    accepted(context, slug).await
}

/// Starts a dump of the set at once, and does not wait for the end.
pub(super) async fn dump(context: &Context<'_>, slug: &str) -> Result<Answer, Problem> {
    let Some(dumps) = context.target(slug)?.published.dumps() else {
        return Err(Problem::new(ProblemKind::Conflict, "this set has no dumps")
            .help("its operator sets `dumps = {}` for the set"));
    };
    dumps.make_now();
    accepted(context, slug).await
}

/// The set, with the status of a request that is carried out later.
async fn accepted(context: &Context<'_>, slug: &str) -> Result<Answer, Problem> {
    let mut answer = one(context, slug).await?;
    *answer.status_mut() = StatusCode::ACCEPTED;
    Ok(answer)
}

/// The tokens, without their digests.
pub(super) fn tokens(context: &Context<'_>) -> Answer {
    #[derive(Serialize)]
    struct One<'t> {
        name: &'t str,
        scope: super::Scope,
        sets: &'t [String],
        created: &'t str,
    }
    #[derive(Serialize)]
    struct All<'t> {
        tokens: Vec<One<'t>>,
    }
    let known = context.api.tokens.current();
    let tokens = known
        .iter()
        .map(|token| One {
            name: &token.name,
            scope: token.scope,
            sets: &token.sets,
            created: &token.created,
        })
        .collect();
    json(StatusCode::OK, &All { tokens })
}
