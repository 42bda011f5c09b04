//! The record of a resource. Any URI is possible, so it is a query parameter.

use super::answers::{RecordedAnswer, blocking, durable, json, waiting};
use super::content::{condition, recorded, refused};
use super::context::Context;
use super::intake::{self, MAX_RECORD_BYTES, parameter};
use super::model::{ChangeWord, MAX_KEY, RecordAnswer, RecordRequest, key_of_uri, relative};
use super::problem::{Problem, ProblemKind};
use super::refusals::{self, elsewhere_only, files_of_nodes};
use super::request_name::{RequestName, idempotency_key};
use crate::message::respond::Answer;
use crate::site::served::ServedSet;
use abreast_core::Change;
use abreast_source::Naming;
use abreast_source::links::LinkRecord;
use http::header::{IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use http::{HeaderMap, Request, StatusCode};
use hyper::body::Incoming;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// The key of the resource in the query.
fn key_in<B>(target: &ServedSet, request: &Request<B>) -> Result<String, Problem> {
    let uri = parameter(request.uri().query(), &["uri"], "uri")?.ok_or_else(|| {
        Problem::new(ProblemKind::Query, "`uri` names the resource")
            .help("for example ?uri=https%3A%2F%2Fexample.org%2Fx")
    })?;
    let naming = target.published.urls.naming();
    if naming.names_entities() {
        let key = match uri.strip_prefix(naming.resources()) {
            Some(path) => naming.key_at(path),
            None => Some(uri).filter(|iri| (1..=MAX_KEY).contains(&iri.len())),
        };
        return key.ok_or_else(|| {
            Problem::new(ProblemKind::Query, "`uri`: neither an IRI nor an address of an entity")
        });
    }
    key_of_uri(&uri, naming.resources()).map_err(|reason| Problem::new(ProblemKind::Query, reason))
}

pub(super) async fn read(
    context: &Context<'_>,
    slug: &str,
    request: &Request<Incoming>,
) -> Result<Answer, Problem> {
    let target = context.target(slug)?;
    let key = key_in(target, request)?;
    let (log, id) = (Arc::clone(context.site.publisher.log()), target.published.id);
    let resources = target.published.urls.resources();
    let found = blocking(move || Ok(log.resource(id, &key)?)).await?;
    let found =
        found.ok_or_else(|| Problem::new(ProblemKind::NotFound, "the set has no such resource"))?;
    Ok(json(
        StatusCode::OK,
        &RecordAnswer::of_state(&found.key, found.position.0, &found.state, &resources),
    ))
}

pub(super) async fn put(
    context: &Context<'_>,
    slug: &str,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    let target = context.target(slug)?;
    let key = key_in(target, &request)?;
    let log = Arc::clone(context.site.publisher.log());
    context.not_importing(target.published.id).await?;
    no_condition(request.headers())?;
    let name = idempotency_key(&request)?;
    if target.published.urls.naming().names_entities() {
        let iri = key.clone();
        let name = |body: &[u8]| named(context, target, name, &[b"PUT", key.as_bytes(), body]);
        return super::entity::put(context, target, iri, name, request).await;
    }
    let body = intake::whole(request.into_body(), MAX_RECORD_BYTES, context.api).await?;
    let body = blocking(move || body.into_bytes()).await?;
    let name = named(context, target, name, &[b"PUT", key.as_bytes(), &body])?;
    let record: RecordRequest = intake::parse(&body)?;
    let resources = target.published.urls.resources();
    if record.change == Some(ChangeWord::Deleted) {
        return Err(Problem::new(ProblemKind::Field, "`change`: what is put is not deleted")
            .help("use DELETE"));
    }
    let other = record
        .uri
        .as_deref()
        .is_some_and(|uri| key_of_uri(uri, &resources).as_deref() != Ok(key.as_str()));
    if other {
        return Err(Problem::new(
            ProblemKind::Field,
            "`uri`: not the resource that the address names",
        ));
    }
    if Naming::is_own(&key) {
        return links(target, &key, record).await;
    }
    let id = target.published.id;
    let receiver = blocking(move || {
        let mut change = record.to_change(&key, &resources, &*log, id).map_err(Problem::from)?;
        let name = name.map(|name| name.check(&*log).map(|()| name.key(0))).transpose()?;
        change.idempotency_key = change.idempotency_key.or(name);
        let (done, receiver) = waiting();
        log.append_then(id, vec![change], done);
        Ok(receiver)
    })
    .await?;
    Ok(json(StatusCode::OK, &RecordedAnswer::from(durable(receiver).await?)))
}

/// The links of a file: the only metadata that can be set for it.
async fn links(target: &ServedSet, key: &str, record: RecordRequest) -> Result<Answer, Problem> {
    if target.published.representations.has_stored_files() {
        return Err(files_of_nodes());
    }
    let Some((deposit, folder)) =
        target.deposit.as_ref().zip(target.published.representations.folder())
    else {
        return Err(elsewhere_only());
    };
    let stated = [
        ("lastmod", record.lastmod.is_some()),
        ("length", record.length.is_some()),
        ("type", record.media_type.is_some()),
        ("encoding", record.encoding.is_some()),
        ("hash", record.hash.is_some()),
    ];
    if let Some((name, _)) = stated.iter().find(|(_, stated)| *stated) {
        return Err(Problem::new(
            ProblemKind::Field,
            format!("`{name}`: determined by the file itself"),
        )
        .help("only `links` can be set for a file of the folder; PUT its content to change it"));
    }
    let Some(records) = record.links else {
        return Err(Problem::new(ProblemKind::Field, "`links` is missing"));
    };
    let resources = target.published.urls.resources();
    let records: Vec<LinkRecord> =
        records.iter().map(|record| relative(record, &resources)).collect();
    let deposit = Arc::clone(deposit);
    let path = Naming::path(key).ok_or_else(elsewhere_only)?;
    let receiver = blocking(move || {
        let (done, receiver) = waiting();
        deposit.relink(&folder, &path, &records, done).map_err(|error| refused(&error))?;
        Ok(receiver)
    })
    .await?;
    Ok(json(StatusCode::OK, &RecordedAnswer::from(recorded(receiver).await?)))
}

pub(super) async fn delete(
    context: &Context<'_>,
    slug: &str,
    request: &Request<Incoming>,
) -> Result<Answer, Problem> {
    let target = context.target(slug)?;
    let key = key_in(target, request)?;
    let log = Arc::clone(context.site.publisher.log());
    context.not_importing(target.published.id).await?;
    if let Some(path) = Naming::path(&key) {
        return super::content::remove(target, path, condition(request.headers())).await;
    }
    if target.published.urls.naming().names_entities() && target.entities.is_none() {
        return Err(refusals::follows_files());
    }
    no_condition(request.headers())?;
    let name = named(context, target, idempotency_key(request)?, &[b"DELETE", key.as_bytes()])?;
    let id = target.published.id;
    let changing = target.entities.as_ref().map(|writer| writer.change()).transpose();
    let changing = changing.map_err(|error| refusals::failed(&error))?;
    let receiver = blocking(move || {
        let mut change = Change::delete(key);
        let name = name.map(|name| name.check(&*log).map(|()| name.key(0)));
        change.idempotency_key = name.transpose()?;
        let (done, receiver) = waiting();
        let done = Box::new(move |result| {
            drop(changing);
            done(result);
        });
        log.append_then(id, vec![change], done);
        Ok(receiver)
    })
    .await?;
    Ok(json(StatusCode::OK, &RecordedAnswer::from(durable(receiver).await?)))
}

/// The name of a request with one change, from its Idempotency-Key.
fn named(
    context: &Context<'_>,
    target: &ServedSet,
    key: Option<String>,
    asked: &[&[u8]],
) -> Result<Option<RequestName>, Problem> {
    let Some(key) = key else { return Ok(None) };
    let digest: [u8; 32] = Sha256::digest(asked.join(&0)).into();
    RequestName::new(context.api, target.published.id, key, digest).map(Some)
}

/// A record does not have an entity tag. Conditions on one are refused, so that a client does not
/// believe that they are checked.
fn no_condition(headers: &HeaderMap) -> Result<(), Problem> {
    for name in [IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE] {
        if headers.contains_key(&name) {
            return Err(Problem::new(
                ProblemKind::Query,
                format!("`{name}` has no meaning for a record"),
            )
            .help("only the content of files has an ETag; leave it out"));
        }
    }
    Ok(())
}
