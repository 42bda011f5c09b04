//! Copies that store triples: files of N-Quads, or a SPARQL endpoint.
//!
//! A resource is an entity. Of the document that states it, its description is kept: the statements
//! about its URI, and those about the blank nodes that they lead to. A version replaces the one
//! before, and what others have stated stays. Or each resource has a graph of its own, named
//! by its URI, and its document is kept whole.
//!
//! | file | subject |
//! |---|---|
//! | `document.rs` | the document of a resource, read, and its description in canonical N-Triples |
//! | `labels.rs` | labels of blank nodes that are unique to a resource |
//! | `label_table.rs` | a table of the labels of entities |
//! | `nquads/` | files of N-Quads that any program can load |
//! | `remote/` | a SPARQL 1.1 endpoint, a graph store, a receiver of SDShare Push |

pub(crate) mod document;
pub(crate) mod label_table;
mod labels;
pub(crate) mod nquads;
pub(crate) mod remote;
pub(crate) mod replaced;

use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::report::sinks::Graph;
use abreast_store::mirror::{Mirror, Row, Task};
use oxrdf::NamedNode;

/// The graph as the state has it.
const GRAPH: &str = "rdf-graph";
const OF_RESOURCE: &str = "resource";

impl Graph {
    /// The graph of a resource; `None` for the default graph.
    fn of<'a>(&'a self, uri: &'a str) -> Option<&'a str> {
        match self {
            Self::Default => None,
            Self::Named(iri) => Some(iri),
            Self::OfResource => Some(uri),
        }
    }

    /// The graph that the copy of a state has.
    fn of_state(mirror: &Mirror) -> Result<Self, Error> {
        let word = mirror.meta(GRAPH)?.unwrap_or_default();
        Ok(match word.strip_prefix('<').and_then(|iri| iri.strip_suffix('>')) {
            Some(iri) => Self::Named(iri.to_owned()),
            None if word == OF_RESOURCE => Self::OfResource,
            None => Self::Default,
        })
    }

    fn word(&self) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::Named(iri) => format!("<{iri}>"),
            Self::OfResource => OF_RESOURCE.to_owned(),
        }
    }

    /// Checks that this is an IRI, and the graph of the earlier runs.
    fn check(&self, mirror: &Mirror) -> Result<(), Error> {
        if let Self::Named(iri) = self
            && NamedNode::new(iri).is_err()
        {
            let message = format!("`{iri}` is not an absolute IRI, so no graph can have it");
            return Err(Error::new("rdf.graph", ExitCode::Usage, message)
                .with_help("name the graph like `http://example.org/graph`"));
        }
        let word = self.word();
        match mirror.meta(GRAPH)? {
            Some(known) if known != word => {
                let message = format!("the copy was begun with the graph `{known}`, not `{word}`");
                Err(Error::new("sink.kind", ExitCode::Usage, message)
                    .with_help("name the same graph as before, or use another place"))
            }
            Some(_) => Ok(()),
            None if mirror.is_read_only() => Ok(()),
            None => Ok(mirror.set_meta(GRAPH, Some(&word))?),
        }
    }
}

/// The row kept of the same bytes, with what is listed now.
fn same_bytes(task: &Task, row: &Row) -> Option<Row> {
    let kept = task.row.as_ref()?;
    let is_same = kept.length == row.length && kept.digests == row.digests;
    is_same.then(|| Row { etag: row.etag.clone(), ..super::with_time(task, kept.clone()) })
}

/// The URI of a resource as an IRI.
fn iri(uri: &str) -> Result<NamedNode, Failure> {
    NamedNode::new(uri).map_err(|cause| {
        Failure::refused("rdf.iri", format!("its URI cannot be in a statement: {cause}"))
    })
}
