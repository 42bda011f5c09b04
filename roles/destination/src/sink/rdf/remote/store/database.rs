//! Transactions on an Oxigraph store.

use super::super::super::document::{Description, digest_of};
use super::super::text::Step;
use crate::report::failure::Failure;
use crate::report::open_store::OpenStore;
use crate::report::sinks::Graph;
use crate::sink::rdf::remote::refusal::{Refusal, broken};
use abreast_rdf::sparql::Reach;
use abreast_rdf::{ReadOptions, Syntax, canonical_lines, write_statement};
use memchr::memmem::find;
use oxigraph::store::{QuadIter, StorageError, Store};
use oxrdf::{
    BlankNode, GraphName, GraphNameRef, NamedNode, NamedOrBlankNode, NamedOrBlankNodeRef, Quad,
    Term,
};
use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;

/// Maximum number of statements that are removed for one resource.
const REMOVED_MAX: usize = 200_000;
/// The prefix of datatypes whose literals a store represents by their values.
const TYPED: &[u8] = b"^^<http://www.w3.org/2001/XMLSchema#";

#[derive(Clone, Debug)]
pub(crate) struct Database {
    store: OpenStore,
}

impl Database {
    pub(super) fn of(opened: &OpenStore) -> Self {
        Self { store: opened.clone() }
    }

    /// Converts a description to the form in which the store returns it: numbers and dates are
    /// stored by their values, so that `1.0` becomes `1`.
    pub(crate) fn as_stored(description: &mut Description, entity: &str) -> Result<(), Failure> {
        if find(&description.lines, TYPED).is_none() {
            return Ok(());
        }
        let stored = || -> Result<Vec<u8>, StorageError> {
            let scratch = Store::new()?;
            scratch.extend(quads_of(&description.lines, entity, &GraphName::DefaultGraph))?;
            let mut lines = Vec::new();
            for quad in &scratch {
                write_statement(quad?.as_ref().into(), &mut lines);
            }
            Ok(lines)
        };
        let odd = |cause: &dyn fmt::Display| Failure::new("rdf.syntax", cause.to_string());
        let lines = stored().map_err(|cause| odd(&cause))?;
        description.lines = canonical_lines(&lines).map_err(|cause| odd(&cause))?.lines;
        description.digest = digest_of(&description.lines);
        // Two statements may have become equal.
        description.reach = Reach::of(&description.lines, entity).map_err(|cause| odd(&cause))?;
        Ok(())
    }

    /// Executes steps in one transaction: removes the stored statements of each entity, and adds
    /// the current ones.
    pub(crate) fn apply(&self, steps: &[Step<'_>], graph: &Graph) -> Result<(), Refusal> {
        let mut transaction = self.store.0.start_transaction().map_err(failed)?;
        for step in steps {
            let new = quads_of(step.lines(), step.entity, &name_of(graph, step.entity));
            let old = stored(step.entity, graph, REMOVED_MAX, &|subject, graph| {
                transaction.quads_for_pattern(subject, None, None, Some(graph))
            })?;
            for quad in old.iter().filter(|quad| !new.contains(quad)) {
                transaction.remove(quad);
            }
            transaction.extend(&new);
            if *graph == Graph::OfResource && new.is_empty() {
                let name = NamedNode::new_unchecked(step.entity);
                transaction.remove_named_graph(&name).map_err(failed)?;
            }
        }
        transaction.commit().map_err(failed)
    }

    /// The stored statements of an entity, as lines.
    pub(crate) fn lines_of(&self, entity: &str, graph: &Graph) -> Result<Vec<u8>, Refusal> {
        let quads = stored(entity, graph, usize::MAX, &|subject, graph| {
            self.store.0.quads_for_pattern(subject, None, None, Some(graph))
        })?;
        let mut lines = Vec::new();
        for quad in &quads {
            write_statement(quad.as_ref().into(), &mut lines);
        }
        Ok(lines)
    }

    /// Makes committed data durable.
    #[cfg_attr(not(feature = "rocksdb"), expect(clippy::unused_self, clippy::unnecessary_wraps))]
    pub(crate) fn flush(&self) -> Result<(), Refusal> {
        #[cfg(feature = "rocksdb")]
        self.store.0.flush().map_err(failed)?;
        Ok(())
    }
}

fn name_of(graph: &Graph, entity: &str) -> GraphName {
    let name = graph.of(entity).map(|iri| GraphName::from(NamedNode::new_unchecked(iri)));
    name.unwrap_or(GraphName::DefaultGraph)
}

/// Canonical lines as statements. The identifier of a blank node depends on its entity and its
/// label, so that equal nodes of two entities are distinct, and unchanged nodes have unchanged
/// identifiers.
fn quads_of(lines: &[u8], entity: &str, graph: &GraphName) -> HashSet<Quad> {
    let named = |node: &BlankNode| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(entity.as_bytes()).update(b" ").update(node.as_str().as_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        BlankNode::new_from_unique_id(u128::from_be_bytes(id))
    };
    let mut quads = HashSet::new();
    // The lines were written by this program, so they are valid. The parser of the store would
    // convert language tags to lower case.
    let options = ReadOptions::default().with_lenient(true);
    let _ = abreast_rdf::read(Syntax::NTriples, lines, &options, &mut |quad| {
        let mut quad = quad.into_owned();
        if let NamedOrBlankNode::BlankNode(node) = &mut quad.subject {
            *node = named(node);
        }
        if let Term::BlankNode(node) = &mut quad.object {
            *node = named(node);
        }
        quad.graph_name.clone_from(graph);
        quads.insert(quad);
        ControlFlow::Continue(())
    });
    quads
}

/// Finds statements by subject, or all, in a graph.
type Find<'f, 's> = &'f dyn Fn(Option<NamedOrBlankNodeRef<'_>>, GraphNameRef<'_>) -> QuadIter<'s>;

/// The statements about an entity and about the blank nodes that they refer to, or all statements
/// in its graph.
fn stored(
    entity: &str,
    graph: &Graph,
    most: usize,
    find: Find<'_, '_>,
) -> Result<Vec<Quad>, Refusal> {
    let (name, root) = (name_of(graph, entity), NamedNode::new_unchecked(entity));
    let mut found: Vec<Quad> = Vec::new();
    let mut known: HashSet<BlankNode> = HashSet::new();
    let mut waiting: Vec<Option<NamedOrBlankNode>> =
        vec![(*graph != Graph::OfResource).then(|| root.into())];
    while let Some(subject) = waiting.pop() {
        let subject = subject.as_ref().map(NamedOrBlankNode::as_ref);
        for quad in find(subject, name.as_ref()) {
            let quad = quad.map_err(failed)?;
            if let (Some(_), Term::BlankNode(node)) = (subject, &quad.object)
                && known.insert(node.clone())
            {
                waiting.push(Some(node.clone().into()));
            }
            if found.len() >= most {
                let message = format!(
                    "what is stored of it has more than {most} statements\n  help: remove it from the store, or use `--graph resource`"
                );
                return Err(Refusal::Request(message));
            }
            found.push(quad);
        }
    }
    Ok(found)
}

fn failed(cause: StorageError) -> Refusal {
    broken(cause.into())
}
