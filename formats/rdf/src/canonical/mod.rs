//! Canonical N-Triples of a description: sorted lines, with labels of blank nodes made of their
//! content.
//!
//! 1. The label of a blank node is made of the smallest part of its content and surroundings that
//!    distinguishes it from the others, so that a change alters few labels. Equal trees are
//!    numbered.
//! 2. Connected blank nodes that remain equal and cannot be numbered safely, in cycles or with
//!    shared nodes, are labelled together: by refinement of colours and, if colours remain equal,
//!    by a search for the least of all orders. Orders that an automorphism makes equal are skipped.
//! 3. When the search needs more than [`MAX_WORK`], the order of the input decides: the graph is
//!    right, but its bytes may differ from the bytes of an equal description.

mod by_content;
mod graph;
pub(crate) mod label;
mod refine;
mod work;

use crate::canonical::label::{Naming, hash_part};
use oxrdf::TripleRef;
use std::collections::{BTreeMap, HashMap};

use self::graph::Graph;
pub(crate) use self::work::Work;
use crate::notation::statement::{Statement, StatementError, is_blank, statements, write_terms};

/// Statements of blank nodes that refinement and search read before they stop: about a second.
pub const MAX_WORK: u64 = 5_000_000;

/// A description in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// Lines of N-Triples in the order of their bytes, without duplicates.
    pub lines: Vec<u8>,
    /// How the labels of its blank nodes were found.
    pub naming: Naming,
}

/// The canonical form of a graph.
///
/// ```
/// use abreast_rdf::{Naming, canonical};
/// use oxrdf::{BlankNode, Literal, NamedNode, Triple};
///
/// let (home, address) = (NamedNode::new("http://example.org/address")?, BlankNode::default());
/// let triples = [
///     Triple::new(NamedNode::new("http://example.org/ada")?, home, address.clone()),
///     Triple::new(address, NamedNode::new("http://example.org/city")?, Literal::from("London")),
/// ];
/// let described = canonical(triples.iter().map(Triple::as_ref));
/// assert_eq!(
///     String::from_utf8(described.lines)?,
///     "<http://example.org/ada> <http://example.org/address> _:b29cce541e6f10000d87cdd66a856d83f .\n\
///      _:b29cce541e6f10000d87cdd66a856d83f <http://example.org/city> \"London\" .\n",
/// );
/// assert_eq!(described.naming, Naming::ByContent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn canonical<'a>(triples: impl IntoIterator<Item = TripleRef<'a>>) -> Canonical {
    canonical_within(triples, MAX_WORK)
}

/// As [`canonical`], with the given limit in place of [`MAX_WORK`].
pub fn canonical_within<'a>(
    triples: impl IntoIterator<Item = TripleRef<'a>>,
    max_work: u64,
) -> Canonical {
    canonical_triples(triples, &mut Work::new(max_work))
}

pub(crate) fn canonical_triples<'a>(
    triples: impl IntoIterator<Item = TripleRef<'a>>,
    work: &mut Work,
) -> Canonical {
    let mut text = Vec::new();
    let mut ends = Vec::new();
    for triple in triples {
        let start = text.len();
        let (subject_end, predicate_end) = write_terms(triple, &mut text);
        ends.push([start, subject_end, predicate_end, text.len()]);
    }
    let statements = ends.iter().map(|&[start, subject_end, predicate_end, end]| Statement {
        subject: &text[start..subject_end],
        predicate: &text[subject_end + 1..predicate_end],
        object: &text[predicate_end + 1..end - " .\n".len()],
    });
    canonical_statements(statements.collect(), work)
}

/// The canonical form of statements written by [`write_statement`](crate::write_statement), in any
/// order and with any labels of blank nodes. Terms are not parsed, so this is little slower than
/// sorting the lines.
///
/// # Examples
/// ```
/// use abreast_rdf::canonical_lines;
///
/// let one = b"_:x <http://h/name> \"Mercator\" .\n<http://h/7> <http://h/maker> _:x .\n";
/// let other = b"<http://h/7> <http://h/maker> _:y .\n_:y <http://h/name> \"Mercator\" .\n";
/// assert_eq!(canonical_lines(one)?.lines, canonical_lines(other)?.lines);
/// # Ok::<(), abreast_rdf::StatementError>(())
/// ```
///
/// # Errors
/// A line that is not a statement as this crate writes it.
pub fn canonical_lines(lines: &[u8]) -> Result<Canonical, StatementError> {
    let statements: Result<Vec<Statement<'_>>, StatementError> = statements(lines).collect();
    Ok(canonical_statements(statements?, &mut Work::new(MAX_WORK)))
}

pub(crate) fn canonical_statements(
    mut statements: Vec<Statement<'_>>,
    work: &mut Work,
) -> Canonical {
    if !statements.iter().any(Statement::has_blank) {
        return Canonical { lines: sorted_lines(&mut statements), naming: Naming::NoBlankNodes };
    }
    let graph = Graph::new(statements);
    let (labels, naming) = refine::name_the_others(&graph, by_content::labels(&graph), work);
    let names: Vec<String> = labels.iter().map(|label| label.to_text()).collect();
    let mut renamed: Vec<Statement<'_>> = graph
        .statements
        .iter()
        .zip(&graph.ends)
        .map(|(statement, (subject, object))| Statement {
            subject: subject.map_or(statement.subject, |node| names[node].as_bytes()),
            object: object.map_or(statement.object, |node| names[node].as_bytes()),
            ..*statement
        })
        .collect();
    Canonical { lines: sorted_lines(&mut renamed), naming }
}

/// A hash of the content of each blank node of canonical lines, by its label. The hash is equal in
/// all descriptions that contain the same node, the label is not. Equal contents within the
/// description are numbered.
pub(crate) fn content_hashes(statements: Vec<Statement<'_>>) -> BTreeMap<&[u8], [u8; 32]> {
    let mut whole = b"description".to_vec();
    for statement in &statements {
        statement.write(&mut whole);
    }
    let graph = Graph::new(statements);
    let contents = by_content::whole_contents(&graph);
    let terms =
        graph.statements.iter().zip(&graph.ends).flat_map(|(statement, ends)| {
            [(statement.subject, ends.0), (statement.object, ends.1)]
        });
    let terms: BTreeMap<&[u8], usize> =
        terms.filter_map(|(term, node)| node.map(|node| (term, node))).collect();
    let mut copies: HashMap<[u8; 32], u64> = HashMap::new();
    let hash = |(term, node): (_, usize)| {
        // Nodes with a path into a cycle have a hash that is valid in this description only.
        let content = contents[node].unwrap_or_else(|| {
            let mut own = whole.clone();
            hash_part(&mut own, term);
            *blake3::hash(&own).as_bytes()
        });
        let copy = copies.entry(content).or_default();
        let numbered = [content.as_slice(), &copy.to_le_bytes()].concat();
        *copy += 1;
        (term, *blake3::hash(&numbered).as_bytes())
    };
    terms.into_iter().map(hash).collect()
}

/// In this order, terms compare as their lines do: a term is a prefix of another one only if a
/// space, the smallest byte, follows it.
fn sorted_lines(statements: &mut Vec<Statement<'_>>) -> Vec<u8> {
    statements.sort_unstable();
    statements.dedup();
    let mut lines = Vec::new();
    for statement in statements {
        statement.write(&mut lines);
    }
    lines
}

pub(crate) mod budget;
pub(crate) mod lower_case_tags;
pub(crate) mod plain;
#[cfg(test)]
mod tests;
