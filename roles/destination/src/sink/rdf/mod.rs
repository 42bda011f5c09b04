//! Copies that store RDF statements: files of N-Quads, a table of labels, or a service.
//!
//! A resource is an entity, and its description is stored: the statements about its URI in its
//! document, and the statements about the blank nodes that they refer to. A new version replaces
//! the previous version, and statements from other sources are not changed. Alternatively each
//! resource has a separate graph with its URI, and its whole document is stored.
//!
//! | file | subject |
//! |---|---|
//! | `document.rs` | parsing the document of a resource, and its description in canonical N-Triples
//! |
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

/// Key of the graph in the database of the copy.
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

    /// The graph of a copy, according to its database.
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

/// The row of the stored version, if the bytes are the same, with the listed properties.
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
