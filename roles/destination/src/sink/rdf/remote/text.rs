//! Queries about resources, and updates of many.
//!
//! IRIs have been checked: none has a character that would end it.

use super::super::document::Description;
use crate::report::sinks::Graph;
use abreast_rdf::sparql::{Reach, Replacement, SparqlError, insert_into, replace};
use std::collections::HashMap;
use std::fmt::Write as _;

const REST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#rest";

/// Tests whether there are named graphs.
pub(super) const NAMED_GRAPHS: &str = "ASK { GRAPH ?g { ?s ?p ?o } }";

/// Tests whether some of 100 statements in named graphs are missing in the default graph.
pub(super) const HIDDEN_NAMED_GRAPHS: &str = "ASK { { SELECT ?s ?p ?o WHERE { GRAPH ?g { ?s ?p ?o } } LIMIT 100 } \
     FILTER NOT EXISTS { ?s ?p ?o } }";

/// Tests whether some statement of the default graph is missing in all named graphs.
pub(super) const OWN_OF_DEFAULT_GRAPH: &str =
    "ASK { ?s ?p ?o FILTER NOT EXISTS { GRAPH ?g { ?s ?p ?o } } }";

/// Tests whether a named graph contains statements about an entity.
pub(super) fn in_named_graphs(entity: &str) -> String {
    format!("ASK {{ GRAPH ?g {{ <{entity}> ?p ?o }} }}")
}

/// A pattern in a graph that does not depend on the resource.
fn within(graph: &Graph, pattern: &str) -> String {
    match graph {
        Graph::Named(iri) => format!("GRAPH <{iri}> {{ {pattern} }}"),
        Graph::Default | Graph::OfResource => pattern.to_owned(),
    }
}

/// Selects the resources with stored statements, as `?r`.
pub(super) fn stored(uris: &[&str], graph: &Graph) -> String {
    let mut text = "SELECT DISTINCT ?r WHERE { VALUES ?r {".to_owned();
    for uri in uris {
        // Writing into memory cannot fail.
        let _ = write!(text, " <{uri}>");
    }
    let pattern = match graph {
        Graph::OfResource => "GRAPH ?r { ?s ?p ?o }".to_owned(),
        _ => within(graph, "?r ?p ?o"),
    };
    let _ = write!(text, " }} {pattern} }}");
    text
}

/// Constructs the description of an entity, with blank nodes up to so many steps away; a step may
/// lead along a list. A list with an IRI in its middle is read too far.
pub(super) fn description(entity: &str, graph: &Graph, steps: usize) -> String {
    if *graph == Graph::OfResource {
        return format!("CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{entity}> {{ ?s ?p ?o }} }}");
    }
    let mut branches = format!("{{ VALUES ?s {{ <{entity}> }} ?s ?p ?o }}");
    for count in 1..=steps {
        branches.push_str(" UNION { ");
        let mut from = format!("<{entity}>");
        for step in 1..=count {
            let to = if step == count { "?s".to_owned() } else { format!("?b{step}") };
            let _ = write!(
                branches,
                "{from} ?p{step} ?n{step} . FILTER(isBlank(?n{step})) ?n{step} <{REST}>* {to} . FILTER(isBlank({to})) "
            );
            from = to;
        }
        branches.push_str("?s ?p ?o }");
    }
    format!("CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {} }}", within(graph, &branches))
}

/// Constructs the statements about entities, without the statements about their blank nodes.
pub(super) fn statements_of(entities: &[&str], graph: &Graph) -> String {
    let mut text = "CONSTRUCT { ?s ?p ?o } WHERE { VALUES ?s {".to_owned();
    for entity in entities {
        let _ = write!(text, " <{entity}>");
    }
    let _ = write!(text, " }} {} }}", within(graph, "?s ?p ?o"));
    text
}

/// The change of an entity.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) entity: &'a str,
    /// The reach of the blank nodes in the stored statements; `None` if the service must be queried
    /// for it.
    pub(super) old: Option<Reach>,
    /// The new description; `None` if the entity is only removed.
    pub(super) new: Option<&'a Description>,
}

impl Step<'_> {
    pub(super) fn lines(&self) -> &[u8] {
        self.new.map_or(&[], |description| &description.lines)
    }
}

/// One update that removes the stored statements of entities and inserts the current ones. `stored`
/// contains the reach of the blank nodes of each stored entity. With a graph for each resource, the
/// IRI of the graph is `entity`.
pub(super) fn update(
    steps: &[Step<'_>],
    stored: &HashMap<&str, Reach>,
    graph: &Graph,
) -> Result<String, SparqlError> {
    if *graph == Graph::OfResource {
        let mut text = String::new();
        for step in steps.iter().filter(|step| stored.contains_key(step.entity)) {
            let _ = writeln!(text, "DROP SILENT GRAPH <{}> ;", step.entity);
        }
        let graphs = steps.iter().map(|step| (Some(step.entity), step.lines()));
        text.push_str(&insert_into(graphs)?);
        return Ok(text);
    }
    let removed: Vec<Replacement<'_>> = steps
        .iter()
        .filter_map(|step| {
            let old = *stored.get(step.entity)?;
            Some(Replacement { entity: step.entity, old, new: b"" })
        })
        .collect();
    let graph = graph.of("").filter(|graph| !graph.is_empty());
    let inserted = steps.iter().map(|step| (graph, step.lines()));
    // All insertions are one operation, because a label must not occur in two operations.
    Ok(replace(graph, &removed)? + &insert_into(inserted)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_name_the_graph() {
        let named = Graph::Named("http://h/g".to_owned());
        assert_eq!(
            stored(&["http://h/a", "http://h/b"], &named),
            "SELECT DISTINCT ?r WHERE { VALUES ?r { <http://h/a> <http://h/b> } GRAPH <http://h/g> { ?r ?p ?o } }"
        );
        assert_eq!(
            description("http://h/a", &Graph::Default, 1),
            format!(
                "CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {{ VALUES ?s {{ <http://h/a> }} ?s ?p ?o }} UNION \
                 {{ <http://h/a> ?p1 ?n1 . FILTER(isBlank(?n1)) ?n1 <{REST}>* ?s . FILTER(isBlank(?s)) ?s ?p ?o }} }}"
            )
        );
    }
}
