//! Generation of SPARQL queries [sparql-query].

use abreast_rdf::sparql::{SparqlError, iri};
use std::fmt::Write as _;

/// Graph of an endpoint that contains the statements of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueryGraph {
    /// The default graph of the endpoint.
    #[default]
    Default,
    /// The named graph with this IRI.
    Named(String),
    /// All named graphs of the endpoint.
    Any,
}

/// Pattern for the entities of a set, which binds `?entity` and optionally `?version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityPattern {
    /// Declarations of prefixes before the pattern.
    prologue: String,
    pattern: String,
}

/// Error of a pattern that does not bind `?entity`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it does not bind `?entity` (help: for example `?entity ?p ?o`)")]
pub struct NoEntity;

impl EntityPattern {
    /// Parses a pattern for the braces of `WHERE`, optionally after declarations of prefixes.
    ///
    /// # Errors
    /// The pattern does not contain `?entity`.
    pub fn parse(text: &str) -> Result<Self, NoEntity> {
        let mut rest = text.trim_start();
        while rest.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("prefix"))
            && let Some(end) = rest.find('>')
        {
            rest = rest[end + 1..].trim_start();
        }
        let (prologue, pattern) = text.split_at(text.len() - rest.len());
        if !pattern.contains("?entity") {
            return Err(NoEntity);
        }
        Ok(Self { prologue: prologue.to_owned(), pattern: pattern.to_owned() })
    }

    pub(super) fn has_version(&self) -> bool {
        self.pattern.contains("?version")
    }

    /// Returns the query for a page of entities after `last`, sorted by IRI.
    pub(super) fn page(
        &self,
        graph: &QueryGraph,
        last: Option<&str>,
        limit: usize,
    ) -> Result<String, SparqlError> {
        let (selected, group) = if self.has_version() {
            ("?entity (MAX(STR(?version)) AS ?latest)", "GROUP BY ?entity ")
        } else {
            ("DISTINCT ?entity", "")
        };
        let mut found = self.found(graph)?;
        if let Some(last) = last {
            // Valid IRIs do not contain characters that end a string.
            let last = iri(last)?;
            let _ = write!(found, "FILTER(STR(?entity) > \"{}\") ", &last[1..last.len() - 1]);
        }
        let Self { prologue, .. } = self;
        Ok(format!(
            "{prologue}SELECT {selected} WHERE {{ {found}}} {group}ORDER BY STR(?entity) LIMIT {limit}"
        ))
    }

    /// Returns the query for the number of entities, as `?n`.
    pub(super) fn count(&self, graph: &QueryGraph) -> Result<String, SparqlError> {
        let (prologue, found) = (&self.prologue, self.found(graph)?);
        Ok(format!("{prologue}SELECT (COUNT(DISTINCT ?entity) AS ?n) WHERE {{ {found}}}"))
    }

    fn found(&self, graph: &QueryGraph) -> Result<String, SparqlError> {
        // The line feed ends a comment at the end of the pattern.
        let pattern = graph.within(&format!("{}\n", self.pattern))?;
        Ok(format!("{pattern} FILTER(isIRI(?entity)) "))
    }
}

impl QueryGraph {
    fn within(&self, pattern: &str) -> Result<String, SparqlError> {
        Ok(match self {
            Self::Default => format!("{{ {pattern} }}"),
            Self::Named(graph) => format!("GRAPH {} {{ {pattern} }}", iri(graph)?),
            Self::Any => format!("GRAPH ?abreast_graph {{ {pattern} }}"),
        })
    }

    /// Returns the pattern for all statements.
    pub(super) fn statements(&self) -> Result<String, SparqlError> {
        self.within("?s ?p ?o .")
    }

    /// Returns the pattern for the statements about entities and about blank nodes within `depth`
    /// statements. `rdf:rest` in lists does not count.
    pub(super) fn descriptions(
        &self,
        entities: &[String],
        depth: usize,
    ) -> Result<String, SparqlError> {
        let values: Result<Vec<String>, SparqlError> =
            entities.iter().map(|entity| iri(entity)).collect();
        let values = values?.join(" ");
        let own = self.within(&format!("VALUES ?s {{ {values} }} ?s ?p ?o ."))?;
        let mut pattern = format!("{{ {own} }}");
        // Each step is a subquery. The time therefore does not depend on the number of paths, and
        // stores do not start with all of their statements.
        let mut nodes = format!("VALUES ?b0 {{ {values} }} ");
        for step in 1..=depth {
            nodes = format!(
                "{{ SELECT DISTINCT ?b{step} WHERE {{ {nodes}?b{before} ?q{step} ?c{step} . FILTER(isBlank(?c{step})) \
                 ?c{step} <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest>* ?b{step} . FILTER(isBlank(?b{step})) }} }} ",
                before = step - 1
            );
            let about = self.within(&format!("{nodes}BIND(?b{step} AS ?s) ?b{step} ?p ?o ."))?;
            let _ = write!(pattern, " UNION {{ {about} }}");
        }
        Ok(format!("{{ {pattern} }}"))
    }
}

/// Returns the query that constructs the statements of a pattern.
pub(super) fn construct(pattern: &str) -> String {
    format!("CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {pattern} }}")
}

/// Returns the query for the number of statements, as `?n`. Without `distinct`, a statement in
/// several graphs counts several times.
pub(super) fn count(pattern: &str, distinct: bool) -> String {
    if distinct {
        format!(
            "SELECT (COUNT(*) AS ?n) WHERE {{ {{ SELECT DISTINCT ?s ?p ?o WHERE {{ {pattern} }} }} }}"
        )
    } else {
        format!("SELECT (COUNT(*) AS ?n) WHERE {{ {pattern} }}")
    }
}
