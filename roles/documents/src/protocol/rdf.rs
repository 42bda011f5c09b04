//! RDF in any syntax, and RDF Patch.

use crate::model::error::Error;
use crate::model::item::{Head, Link, Statement};
use crate::protocol::{Next, Out, Source};
use abreast_rdf::{ReadError, ReadOptions, Syntax};
use oxrdf::{GraphNameRef, QuadRef};
use rdf_patch::Change;
use std::ops::ControlFlow;

pub(crate) fn read(
    syntax: Syntax,
    source: &mut Source<'_>,
    out: &mut Out<'_>,
) -> Result<Next, Error> {
    let url = source.url;
    out.document(Head {
        url: url.to_owned(),
        protocol: "RDF".to_owned(),
        kind: syntax.name().to_owned(),
        ..Head::default()
    })?;
    let mut options = ReadOptions::default();
    if abreast_webtypes::has_scheme(url) {
        options = options.with_base(url);
    }
    let mut stopped = None;
    let done = abreast_rdf::read(syntax, &mut *source.input, &options, &mut |quad| match out
        .statement(statement(quad, None))
    {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            stopped = Some(error);
            ControlFlow::Break(())
        }
    });
    if let Some(error) = stopped {
        return Err(error);
    }
    done.map(|()| Next::new()).map_err(|error| match error {
        ReadError::Syntax(fault) => Error::syntax(url, &fault),
        ReadError::Io(error) => Error::input(url, error),
        other => Error::document(url, "rdf", other.to_string(), None),
    })
}

fn statement(quad: QuadRef<'_>, change: Option<&'static str>) -> Statement {
    let graph = match quad.graph_name {
        GraphNameRef::DefaultGraph => None,
        other => Some(other.to_string()),
    };
    Statement {
        change,
        subject: quad.subject.to_string(),
        predicate: quad.predicate.to_string(),
        object: quad.object.to_string(),
        graph,
    }
}

/// Reads a patch. Changes are passed on when their transaction is committed.
pub(crate) fn read_patch(source: &mut Source<'_>, out: &mut Out<'_>) -> Result<Next, Error> {
    let url = source.url;
    let failed = |error: rdf_patch::ReadError| match error {
        rdf_patch::ReadError::Syntax(fault) => {
            let message =
                format!("line {}, column {}: {}", fault.line(), fault.column(), fault.message());
            Error::document(url, fault.code(), message, fault.help())
        }
        rdf_patch::ReadError::Io(error) => Error::input(url, error),
        other => Error::document(url, "patch", other.to_string(), None),
    };
    let mut reader = rdf_patch::Reader::new(&mut *source.input, rdf_patch::ReadOptions::lenient());
    let mut is_first = true;
    loop {
        let changes = reader.next_transaction().map_err(failed)?;
        if is_first {
            is_first = false;
            let header = reader.header();
            let links = [("id", header.id()), ("prev", header.prev())];
            let links = links.into_iter().filter_map(|(rel, href)| Some(Link::new(rel, href?)));
            out.document(Head {
                url: url.to_owned(),
                protocol: "RDF Patch".to_owned(),
                kind: "RDF Patch".to_owned(),
                links: links.collect(),
                ..Head::default()
            })?;
        }
        let Some(changes) = changes else { return Ok(Next::new()) };
        for change in &changes {
            match change {
                Change::Add(quad) => out.statement(statement(quad.as_ref(), Some("added")))?,
                Change::Remove(quad) => out.statement(statement(quad.as_ref(), Some("removed")))?,
                Change::AddPrefix { .. } | Change::RemovePrefix { .. } => {}
            }
        }
    }
}
