//! The description of an entity, put in any syntax of RDF.

use super::answers::{RecordedAnswer, blocking, durable, json, waiting};
use super::context::Context;
use super::intake;
use super::problem::{Problem, ProblemKind, disk_full};
use super::refusals;
use super::request_name::RequestName;
use crate::message::respond::Answer;
use crate::site::served::ServedSet;
use abreast_rdf::{ReadLimits, Syntax};
use abreast_source::origin::rdf::{RdfError, read_description};
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use std::sync::Arc;

/// Most bytes of a received document.
pub(super) const MAX_DOCUMENT: u64 = 16 << 20;

/// Stores the description of the entity with this IRI; `name` makes the request's name from its body.
pub(super) async fn put(
    context: &Context<'_>,
    target: &ServedSet,
    iri: String,
    name: impl FnOnce(&[u8]) -> Result<Option<RequestName>, Problem>,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    let writer = Arc::clone(target.entities.as_ref().ok_or_else(refusals::follows_files)?);
    let syntax = syntax_of(&request)?;
    let _place = context.site.memory.receive(&context.client).await;
    let body = intake::whole(request.into_body(), MAX_DOCUMENT, context.api).await?;
    let memory = context.site.memory.take(ReadLimits::in_memory().memory(syntax, body.len())).await;
    let body = blocking(move || body.into_bytes()).await?;
    let name = name(&body)?;
    let log = Arc::clone(context.site.publisher.log());
    let receiver = blocking(move || {
        let _memory = memory;
        let name = name.map(|name| name.check(&*log).map(|()| name.key(0))).transpose()?;
        let lines = read_description(&iri, syntax, &body)
            .map_err(|error| Problem::new(ProblemKind::Field, error.to_string()))?;
        let (done, receiver) = waiting();
        writer.put(&iri, &lines, name, done).map_err(|error| match refusals::passing(&error) {
            Some(problem) => problem,
            None if matches!(error, RdfError::Importing) => refusals::failed(&error),
            None if refusals::is_of_full_disk(&error) => disk_full(),
            None => {
                tracing::error!("cannot record the description of <{iri}>: {error}");
                Problem::new(ProblemKind::Store, "the description cannot be recorded")
                    .help("the server's log has the reason")
            }
        })?;
        Ok(receiver)
    })
    .await?;
    Ok(json(StatusCode::OK, &RecordedAnswer::from(durable(receiver).await?)))
}

fn syntax_of(request: &Request<Incoming>) -> Result<Syntax, Problem> {
    let stated = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    stated.and_then(Syntax::of_media_type).filter(|syntax| *syntax != Syntax::NQuads).ok_or_else(
        || {
            Problem::new(
                ProblemKind::Query,
                format!("`Content-Type`: `{}` is no syntax of RDF", stated.unwrap_or_default()),
            )
            .help("text/turtle, application/n-triples, application/rdf+xml or application/ld+json")
        },
    )
}
