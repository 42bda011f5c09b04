//! Queries about resources, and updates of many.
//!
//! IRIs have been checked: none has a character that would end it.

use super::super::Graph;
use super::Change;
use abreast_rdf::sparql::{Reach, Replacement, SparqlError, insert_into, replace};
use std::collections::HashMap;
use std::fmt::Write as _;

/// A pattern in a graph that does not depend on the resource.
fn within(graph: &Graph, pattern: &str) -> String {
    match graph {
        Graph::Named(iri) => format!("GRAPH <{iri}> {{ {pattern} }}"),
        Graph::Default | Graph::OfResource => pattern.to_owned(),
    }
}

/// Selects, as `?r`, those of the resources of which anything is stored.
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

/// Constructs the description of a resource, with blank nodes up to so many steps away.
pub(super) fn description(uri: &str, graph: &Graph, depth: usize) -> String {
    if *graph == Graph::OfResource {
        return format!("CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{uri}> {{ ?s ?p ?o }} }}");
    }
    let mut branches = format!("{{ VALUES ?s {{ <{uri}> }} ?s ?p ?o }}");
    for steps in 1..=depth {
        branches.push_str(" UNION { ");
        let (mut from, mut tests) = (format!("<{uri}>"), Vec::new());
        for step in 1..=steps {
            let to = if step == steps { "?s".to_owned() } else { format!("?b{step}") };
            let _ = write!(branches, "{from} ?p{step} {to} . ");
            tests.push(format!("isBlank({to})"));
            from = to;
        }
        let _ = write!(branches, "?s ?p ?o FILTER({}) }}", tests.join(" && "));
    }
    format!("CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {} }}", within(graph, &branches))
}

/// One update that removes what is stored of resources and inserts what is stated now. `stored` has
/// how far the blank nodes reach of each resource that is stored.
pub(super) fn update(
    changes: &[&Change],
    stored: &HashMap<&str, Reach>,
    graph: &Graph,
) -> Result<String, SparqlError> {
    if *graph == Graph::OfResource {
        let mut text = String::new();
        for change in changes.iter().filter(|change| stored.contains_key(&*change.uri)) {
            let _ = writeln!(text, "DROP SILENT GRAPH <{}> ;", change.uri);
        }
        let graphs = changes.iter().map(|change| (Some(&*change.uri), change.lines()));
        text.push_str(&insert_into(graphs)?);
        return Ok(text);
    }
    let removed: Vec<Replacement<'_>> = changes
        .iter()
        .filter_map(|change| {
            let old = *stored.get(&*change.uri)?;
            Some(Replacement { entity: &change.uri, old, new: b"" })
        })
        .collect();
    let graph = graph.of("").filter(|graph| !graph.is_empty());
    let inserted = changes.iter().map(|change| (graph, change.lines()));
    // What is inserted is one operation: a label must not come in two.
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
            "CONSTRUCT { ?s ?p ?o } WHERE { { VALUES ?s { <http://h/a> } ?s ?p ?o } UNION \
             { <http://h/a> ?p1 ?s . ?s ?p ?o FILTER(isBlank(?s)) } }"
        );
    }
}
