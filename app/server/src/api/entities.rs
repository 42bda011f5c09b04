//! Import of all descriptions of a set of entities, or of a difference, in one request.

use super::answers::{blocking, json};
use super::context::Context;
use super::intake::{Pieces, parameter};
use super::problem::{Problem, ProblemKind};
use super::refusals::{self, failed};
use crate::message::respond::Answer;
use abreast_rdf::Syntax;
use abreast_source::origin::rdf::{Delta, Import, RdfBytes, RdfInput, RdfReport};
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use serde::Serialize;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::sync::Arc;

/// Bytes that are collected before they are passed to a blocking thread.
const CHUNK: usize = 256 * 1024;
const PARAMETERS: [&str; 3] = ["as", "lenient", "dry-run"];

/// The response to an import.
#[derive(Serialize)]
struct Imported {
    entities: u64,
    created: u64,
    updated: u64,
    deleted: u64,
    unchanged: u64,
    left_out: u64,
    invalid_statements: u64,
    shared_blank_nodes: u64,
    unreached_blank_nodes: u64,
}

impl From<RdfReport> for Imported {
    fn from(report: RdfReport) -> Self {
        let RdfReport { entities, created, updated, deleted, unchanged, .. } = report;
        let RdfReport { left_out, invalid_statements, .. } = report;
        let RdfReport { shared_blank_nodes, unreached_blank_nodes, .. } = report;
        Self {
            entities,
            created,
            updated,
            deleted,
            unchanged,
            left_out,
            invalid_statements,
            shared_blank_nodes,
            unreached_blank_nodes,
        }
    }
}

pub(super) async fn import(
    context: &Context<'_>,
    slug: &str,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    let target = context.target(slug)?;
    if !target.published.urls.naming().names_entities() {
        return Err(Problem::new(ProblemKind::Conflict, "this set has no entities"));
    }
    let writer = Arc::clone(target.entities.as_ref().ok_or_else(refusals::follows_files)?);
    let query = request.uri().query();
    let is_set =
        |name| Ok::<_, Problem>(parameter(query, &PARAMETERS, name)?.as_deref() == Some("true"));
    let (lenient, dry_run) = (is_set("lenient")?, is_set("dry-run")?);
    let what = parameter(query, &PARAMETERS, "as")?;
    let syntax = syntax_of(&request, what.as_deref())?;
    let _place = context.api.uploads.enter(&context.client).await;
    let mut file = blocking({
        let writer = Arc::clone(&writer);
        move || writer.file().map_err(|error| failed(&error.into()))
    })
    .await?;
    let options = &context.api.options;
    let mut pieces = Pieces::new(request.into_body(), options.max_content, options.body_time);
    let mut chunk = Vec::with_capacity(CHUNK);
    while let Some(piece) = pieces.next().await? {
        chunk.extend_from_slice(&piece);
        if chunk.len() >= CHUNK {
            (file, chunk) = write(file, chunk).await?;
        }
    }
    (file, _) = write(file, chunk).await?;
    let report = blocking(move || {
        file.rewind().map_err(|error| failed(&error.into()))?;
        let (name, bytes) = ("the body".to_owned(), RdfBytes::File(file));
        let is_patch = syntax.is_none();
        let syntax = syntax.unwrap_or(Syntax::NQuads);
        let input = RdfInput { name, syntax, base: None, bytes };
        let import = if is_patch {
            Import::Delta(Delta::Patch(input), lenient)
        } else {
            Import::State(input)
        };
        let report = writer.import(import, dry_run).map_err(|error| failed(&error))?;
        report.warn();
        Ok(report)
    })
    .await?;
    Ok(json(StatusCode::OK, &Imported::from(report)))
}

async fn write(mut file: File, mut chunk: Vec<u8>) -> Result<(File, Vec<u8>), Problem> {
    blocking(move || {
        file.write_all(&chunk).map_err(|error| failed(&error.into()))?;
        chunk.clear();
        Ok((file, chunk))
    })
    .await
}

/// The syntax of a complete dataset; `None` for a difference.
fn syntax_of(request: &Request<Incoming>, what: Option<&str>) -> Result<Option<Syntax>, Problem> {
    let stated = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let stated = stated.unwrap_or_default();
    let essence = stated.split(';').next().unwrap_or_default().trim();
    let is_patch = [rdf_patch::MEDIA_TYPE, rdf_patch::MEDIA_TYPE_TEXT]
        .iter()
        .any(|known| essence.eq_ignore_ascii_case(known));
    let wrong = |help: &str| {
        let message = format!("`Content-Type`: `{stated}` does not fit");
        Problem::new(ProblemKind::Query, message).help(help)
    };
    match what {
        Some("difference") if is_patch => Ok(None),
        Some("difference") => Err(wrong(rdf_patch::MEDIA_TYPE)),
        Some("state") => Syntax::of_media_type(stated).map(Some).ok_or_else(|| {
            wrong("a media type of RDF, such as application/n-triples or text/turtle")
        }),
        _ => Err(Problem::new(ProblemKind::Query, "`as` states what is imported").help(
            "`?as=state`: the body is all there is, other entities are deleted; `?as=difference`: it is RDF Patch",
        )),
    }
}
