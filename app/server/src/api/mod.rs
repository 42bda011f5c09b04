//! `/api/v1`: reading the log and recording changes over HTTP. `openapi.json` describes it.
//!
//! A change is durable before it is answered. Parallel requests share a commit of the store.

mod access;
mod answers;
mod changes;
mod content;
mod context;
mod entities;
mod entity;
mod hub;
pub mod hub_model;
mod import;
mod intake;
pub mod model;
mod openapi;
mod operations;
mod page;
mod problem;
mod push;
mod record;
mod refusals;
mod request_name;
mod sets;
mod visible;

pub use crate::site::api::{Api, ApiOptions, Readers};
pub use crate::site::token_place::TokenPlace;
pub use crate::site::tokens::{
    PREFIX, Scope, Token, change_tokens, check_tokens, new_token, read_tokens, repair_tokens,
    tokens_path, write_tokens,
};
pub use access::is_local_host;
pub(crate) use access::{may_publish, refuse_tokens_in_url};
pub(crate) use changes::records_of;
pub use changes::{change_of, reused_key};
pub(crate) use hub::TopicUrls;
pub use import::{JsonLines, MAX_LINE, ReadError, Table};
pub use openapi::OPENAPI;

use crate::message::respond::Answer;
use crate::site::heads::Heads;
use crate::site::served::Site;
use abreast_hub::Client;
use answers::typed;
use context::Context;
use http::header::{CONNECTION, CONTENT_SECURITY_POLICY};
use http::{HeaderValue, Method, Request, Uri};
use hyper::body::{Body as _, Incoming};
use openapi::openapi;
use operations::{Call, find};
use problem::{Problem, ProblemKind};
use std::sync::Arc;
use visible::VisibleSets;

/// Whether everyone may read this address without a token: then scripts of any page may also read
/// it.
pub(crate) fn is_public(site: &Site, path: &str) -> bool {
    let readers = site.api.as_ref().map(|api| api.options.readers);
    path == "/api/v1/openapi.json" || page::is_root(path) || readers == Some(Readers::Anyone)
}

/// Whether a path belongs to the API.
pub(crate) fn is_path(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Whether a request waits for changes.
pub(crate) fn waits(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|field| field.starts_with("wait=")))
}

/// Answers a request to the API.
pub(crate) async fn answer(
    site: &Arc<Site>,
    heads: &Heads,
    request: Request<Incoming>,
    client: Client,
) -> Answer {
    let has_body = !request.body().is_end_stream();
    let chunked = request.headers().contains_key(http::header::TRANSFER_ENCODING);
    let mut answer = match respond(site, heads, request, client).await {
        Ok(answer) => answer,
        Err(problem) => problem.answer(),
    };
    let failed = !answer.status().is_success();
    // The rest of a body is not read, and a chunked body must be the last on its connection.
    if (has_body && failed) || chunked {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");
    answer.headers_mut().entry(CONTENT_SECURITY_POLICY).or_insert(policy);
    answer
}

async fn respond(
    site: &Arc<Site>,
    heads: &Heads,
    request: Request<Incoming>,
    client: Client,
) -> Result<Answer, Problem> {
    let Some(api) = &site.api else {
        return Err(Problem::new(ProblemKind::NotFound, "this server has no API"));
    };
    let path = request.uri().path().to_owned();
    if page::is_root(&path) && matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(page::root(site, api.options.readers, request.headers()));
    }
    let (operation, call) = find(request.method(), &path)?;
    let mut context = Context { site, heads, api, operation, client, seen: VisibleSets::All };
    context.seen = access::check(&context, &call, &request, client)?;
    let answer = run(&context, call, request).await;
    if cfg!(debug_assertions) {
        let status = match &answer {
            Ok(answer) => answer.status(),
            Err(problem) => problem.answer().status(),
        };
        let documented = operation.statuses.contains(&status.as_u16());
        debug_assert!(
            documented,
            "{} {} answers {status}, which is not documented",
            operation.method, operation.path
        );
    }
    answer
}

async fn run(
    context: &Context<'_>,
    call: Call<'_>,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    match call {
        Call::OpenApi => {
            Ok(typed("application/json", openapi(context.site.publisher.urls().base())))
        }
        Call::Tokens => Ok(sets::tokens(context)),
        Call::Hub => hub::overview(context).await,
        Call::HubTopics => hub::topics(context, request.uri().query()).await,
        Call::HubTargets(topic) => hub::targets(context, topic, request.uri().query()).await,
        Call::HubTarget(id) => hub::target(context, id, request.uri().query()).await,
        Call::Sets => sets::all(context).await,
        Call::Set(slug) => sets::one(context, slug).await,
        Call::ReadChanges(slug) => changes::read(context, slug, &request).await,
        Call::RecordChanges(slug) => changes::record(context, slug, request).await,
        Call::ImportEntities(slug) => entities::import(context, slug, request).await,
        Call::ReadRecord(slug) => record::read(context, slug, &request).await,
        Call::PutRecord(slug) => record::put(context, slug, request).await,
        Call::DeleteRecord(slug) => record::delete(context, slug, &request).await,
        Call::Push(slug) => push::receive(context, slug, request).await,
        Call::ReadContent(slug, path) => content::read(context, slug, path, &request).await,
        Call::PutContent(slug, path) => content::put(context, slug, path, request).await,
        Call::DeleteContent(slug, path) => content::delete(context, slug, path, &request).await,
        Call::HubReplay(_)
        | Call::HubEnd(_)
        | Call::ConfirmDeletions(_)
        | Call::Dump(_)
        | Call::Scan(_) => {
            let administrator = access::name_of(context, request.headers()).unwrap_or_default();
            act(context, call, request.uri(), &administrator).await
        }
    }
}

/// Carries out an operation for operators, which has no body, and logs the administrator.
async fn act(
    context: &Context<'_>,
    call: Call<'_>,
    uri: &Uri,
    administrator: &str,
) -> Result<Answer, Problem> {
    let query = uri.query();
    let done = match call {
        Call::HubReplay(id) => hub::replay(context, id, query).await,
        Call::HubEnd(id) => hub::end(context, id, query).await,
        Call::ConfirmDeletions(slug) => sets::confirm_deletions(context, slug).await,
        Call::Dump(slug) => sets::dump(context, slug).await,
        Call::Scan(slug) => sets::scan(context, slug).await,
        _ => Err(Problem::new(ProblemKind::NotFound, "no form has this operation")),
    };
    let (client, path, query) = (&context.client, uri.path(), query.unwrap_or_default());
    match &done {
        Ok(_) => tracing::info!(administrator, %client, query, "carried out: POST {path}"),
        Err(problem) => {
            let status = problem.answer().status().as_u16();
            tracing::warn!(administrator, %client, query, status, "refused: POST {path}");
        }
    }
    done
}

/// Carries out the operation at this path of the API for an administrator, whose authorization the
/// caller has checked.
pub(crate) async fn administer(
    site: &Arc<Site>,
    heads: &Heads,
    uri: &Uri,
    client: Client,
    administrator: &str,
) -> Result<Answer, Problem> {
    let Some(api) = &site.api else {
        return Err(Problem::new(ProblemKind::NotFound, "this server has no API"));
    };
    let (operation, call) = find(&Method::POST, uri.path())?;
    let context = Context { site, heads, api, operation, client, seen: VisibleSets::All };
    act(&context, call, uri, administrator).await
}
