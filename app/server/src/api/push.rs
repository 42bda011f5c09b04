//! The receiver of SDShare Push: fragments of entities, one or several in a request.
//!
//! The body of `POST …/push?resource=IRI` contains the statements about the entity. It replaces all
//! earlier statements; an empty body deletes the entity. Several `resource` are a batch, which is
//! recorded as a whole or not at all.

use super::answers::{RecordedAnswer, blocking, durable, json, waiting};
use super::context::Context;
use super::entity::MAX_DOCUMENT;
use super::intake;
use super::model::MAX_KEY;
use super::problem::{Problem, ProblemKind};
use super::refusals;
use super::refusals::follows_files;
use crate::message::respond::Answer;
use abreast_rdf::{ReadLimits, Syntax};
use abreast_source::origin::rdf::read_descriptions;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Request, StatusCode};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use std::collections::HashSet;
use std::sync::Arc;

/// Most entities in a request.
const MAX_RESOURCES: usize = 1_000;

pub(super) async fn receive(
    context: &Context<'_>,
    slug: &str,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    let target = context.target(slug)?;
    // A set is an SDShare collection with a single graph.
    let own_graph = format!("{}sdshare", target.published.urls.base());
    let iris = resources(request.uri().query(), &own_graph)?;
    context.not_importing(target.published.id).await?;
    if !target.published.urls.naming().names_entities() {
        return Err(Problem::new(ProblemKind::Conflict, "this set has no entities")
            .help("push to a set with `origin = \"rdf\"` and without `folder`"));
    }
    let writer = Arc::clone(target.entities.as_ref().ok_or_else(follows_files)?);
    let syntax = syntax(request.headers());
    let _place = context.site.memory.receive(&context.client).await;
    let body = intake::whole(request.into_body(), MAX_DOCUMENT, context.api).await?;
    // The media type of an empty body does not matter.
    let syntax = if body.len() == 0 { Syntax::NTriples } else { syntax? };
    let memory = context.site.memory.take(ReadLimits::in_memory().memory(syntax, body.len())).await;
    let receiver = blocking(move || {
        let (_memory, body) = (memory, body.into_bytes()?);
        let found = read_descriptions(&iris, syntax, &body)
            .map_err(|error| Problem::new(ProblemKind::Field, error.to_string()))?;
        let (done, receiver) = waiting();
        writer.record(found, None, done).map_err(|error| refusals::failed(&error))?;
        Ok(receiver)
    })
    .await?;
    Ok(json(StatusCode::OK, &RecordedAnswer::from(durable(receiver).await?)))
}

/// The entities in the query. The only allowed graph is the set's.
fn resources(query: Option<&str>, own_graph: &str) -> Result<Vec<String>, Problem> {
    let wrong = |message: String| Problem::new(ProblemKind::Query, message);
    let (mut iris, mut graph) = (Vec::new(), None);
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = percent_decode_str(value).decode_utf8();
        let value =
            decoded.map_err(|_| wrong(format!("`{}` is not UTF-8", name.escape_debug())))?;
        match name {
            "resource" => iris.push(value.into_owned()),
            "graph" if graph.is_none() => graph = Some(value.into_owned()),
            "graph" => return Err(wrong("`graph` is given twice".to_owned())),
            _ => {
                let shown: String = name.chars().take(40).collect();
                return Err(wrong(format!("unknown parameter `{}`", shown.escape_debug()))
                    .help("`resource` and `graph` are known"));
            }
        }
    }
    if let Some(graph) = graph.filter(|graph| graph != own_graph) {
        let message = format!("`graph`: the set is not the graph `{}`", graph.escape_debug());
        return Err(wrong(message).help(format!("leave it out, or name {own_graph}")));
    }
    if iris.is_empty() {
        return Err(wrong("`resource` names the entity".to_owned())
            .help("for example ?resource=https%3A%2F%2Fexample.org%2Fx"));
    }
    if iris.len() > MAX_RESOURCES {
        return Err(wrong(format!("there are more than {MAX_RESOURCES} `resource`"))
            .help("send several requests"));
    }
    let mut known = HashSet::new();
    for iri in &iris {
        if iri.len() > MAX_KEY || !abreast_rdf::is_iri(iri) {
            let shown: String = iri.chars().take(100).collect();
            return Err(wrong(format!(
                "`resource`: `{}` is no absolute IRI",
                shown.escape_debug()
            )));
        }
        if !known.insert(iri) {
            return Err(wrong(format!("`resource`: {iri} is named twice")));
        }
    }
    Ok(iris)
}

fn syntax(headers: &HeaderMap) -> Result<Syntax, Problem> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(Problem::new(ProblemKind::MediaType, "an encoded body is not taken")
            .help("send it as it is, without `Content-Encoding`"));
    }
    let stated = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let found = stated.and_then(|stated| {
        Syntax::of_media_type(stated).or_else(|| Syntax::of_sdshare_media_type(stated))
    });
    found.filter(|syntax| !matches!(syntax, Syntax::NQuads | Syntax::TriG)).ok_or_else(|| {
        let shown = stated.unwrap_or_default().escape_debug();
        Problem::new(ProblemKind::MediaType, format!("`Content-Type`: `{shown}` is not taken")).help(
            "application/n-triples, text/plain (N-Triples), text/turtle, application/rdf+xml or application/ld+json",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_each_entity_once() {
        let graph = "http://h/s/sdshare";
        let of = |query: &str| resources(Some(query), graph).map_err(|_| ());
        assert_eq!(
            of("resource=http%3A%2F%2Fh%2Fa&resource=urn:x:b+c&graph=http://h/s/sdshare"),
            Ok(vec!["http://h/a".to_owned(), "urn:x:b+c".to_owned()])
        );
        for wrong in [
            "",
            "graph=http://h/s/sdshare",
            "resource=",
            "resource=a",
            "resource=http://h/%3E%20%7D%20%3B%20DROP%20ALL",
            "resource=http://h/a%0A",
            "resource=http://h/%FF",
            "resource=http://h/a&resource=http://h/a",
            "resource=http://h/a&graph=http://h/other",
            "resource=http://h/a&graph=http://h/s/sdshare&graph=http://h/s/sdshare",
            "resource=http://h/a&uri=http://h/a",
        ] {
            assert_eq!(of(wrong), Err(()), "{wrong}");
        }
        let many: Vec<_> = (0..=MAX_RESOURCES).map(|at| format!("resource=urn:x:{at}")).collect();
        assert_eq!(of(&many.join("&")), Err(()));
        assert_eq!(of(&many[1..].join("&")).map(|iris| iris.len()), Ok(MAX_RESOURCES));
    }
}
