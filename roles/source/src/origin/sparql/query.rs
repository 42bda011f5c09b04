//! The text of queries [sparql-query].

use abreast_rdf::sparql::{SparqlError, iri};
use std::fmt::Write as _;

/// Where an endpoint has the statements of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueryGraph {
    /// In its default graph.
    #[default]
    Default,
    /// In a named graph.
    Named(String),
    /// In any of its named graphs.
    Any,
}

/// How the entities of a set are found: a pattern that binds `?entity`, and perhaps `?version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityPattern {
    /// Declarations of prefixes.
    prologue: String,
    pattern: String,
}

/// A pattern that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it does not bind `?entity` (help: for example `?entity ?p ?o`)")]
pub struct NoEntity;

impl EntityPattern {
    /// A pattern as it is between the braces of `WHERE`; declarations of prefixes may be before it.
    ///
    /// # Errors
    /// `?entity` is not in it.
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

    /// Entities after `last`, in the order of their IRIs.
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
            // Valid IRIs have no characters that end a string.
            let last = iri(last)?;
            let _ = write!(found, "FILTER(STR(?entity) > \"{}\") ", &last[1..last.len() - 1]);
        }
        let Self { prologue, .. } = self;
        Ok(format!(
            "{prologue}SELECT {selected} WHERE {{ {found}}} {group}ORDER BY STR(?entity) LIMIT {limit}"
        ))
    }

    /// How many entities there are, as `?n`.
    pub(super) fn count(&self, graph: &QueryGraph) -> Result<String, SparqlError> {
        let (prologue, found) = (&self.prologue, self.found(graph)?);
        Ok(format!("{prologue}SELECT (COUNT(DISTINCT ?entity) AS ?n) WHERE {{ {found}}}"))
    }

    fn found(&self, graph: &QueryGraph) -> Result<String, SparqlError> {
        // A comment in the pattern ends with its line.
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

    /// The pattern of all statements.
    pub(super) fn statements(&self) -> Result<String, SparqlError> {
        self.within("?s ?p ?o .")
    }

    /// The pattern of the statements about entities, and about the blank nodes that at most `depth`
    /// statements lead to. In lists, `rdf:rest` does not count.
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
        // Each step is a query of its own: the number of paths does not matter, and no store begins
        // with all of its statements.
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

/// The statements of a pattern.
pub(super) fn construct(pattern: &str) -> String {
    format!("CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {pattern} }}")
}

/// How many statements a pattern has, as `?n`; those in several graphs count several times unless
/// `distinct`.
pub(super) fn count(pattern: &str, distinct: bool) -> String {
    if distinct {
        format!(
            "SELECT (COUNT(*) AS ?n) WHERE {{ {{ SELECT DISTINCT ?s ?p ?o WHERE {{ {pattern} }} }} }}"
        )
    } else {
        format!("SELECT (COUNT(*) AS ?n) WHERE {{ {pattern} }}")
    }
}
