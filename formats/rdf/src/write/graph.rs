//! The statements of a description, by subject.

use crate::notation::syntax::Syntax;
use crate::read::error::ReadError;
use crate::read::lines::parse;
use oxrdf::vocab::rdf;
use oxrdf::{BlankNode, NamedOrBlankNode, NamedOrBlankNodeRef, QuadRef, Term, Triple, TripleRef};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// Most blank nodes that are nested inside each other.
const MAX_NESTING: usize = 32;

/// Parses lines of N-Triples. Language tags do not change.
pub(super) fn triples(lines: &[u8]) -> Result<Vec<Triple>, ReadError> {
    let mut triples = Vec::new();
    let mut add = |quad: QuadRef<'_>| {
        triples.push(Triple::from(TripleRef::from(quad)));
        ControlFlow::Continue(())
    };
    let _ = parse(Syntax::NTriples, lines, false, 0, &mut add)?;
    Ok(triples)
}

/// Prefixes the labels of blank nodes with the number of the description.
pub(super) fn rename(triples: &mut [Triple], number: u64) {
    let name = |node: &BlankNode| BlankNode::new_unchecked(format!("s{number}_{}", node.as_str()));
    for triple in triples {
        if let NamedOrBlankNode::BlankNode(node) = &triple.subject {
            triple.subject = name(node).into();
        }
        if let Term::BlankNode(node) = &triple.object {
            triple.object = name(node).into();
        }
    }
}

/// Statements by subject, in the order of the subjects' first occurrences, and then by predicate.
pub(super) fn by_subject(triples: &[Triple]) -> Vec<(NamedOrBlankNodeRef<'_>, Vec<&Triple>)> {
    let mut index = HashMap::new();
    let mut groups: Vec<(NamedOrBlankNodeRef<'_>, Vec<&Triple>)> = Vec::new();
    for triple in triples {
        let subject = triple.subject.as_ref();
        let at = *index.entry(subject).or_insert_with(|| {
            groups.push((subject, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(triple);
    }
    for (_, statements) in &mut groups {
        statements.sort_by(|one, other| one.predicate.cmp(&other.predicate));
    }
    groups
}

/// The blank nodes to write inside the statement that mentions them.
pub(super) struct Nesting<'a> {
    pub(super) statements: HashMap<&'a str, Vec<&'a Triple>>,
    nested: HashSet<&'a str>,
    /// Cells of complete lists, which are written as lists.
    lists: HashSet<&'a str>,
}

impl<'a> Nesting<'a> {
    pub(super) fn new(triples: &'a [Triple]) -> Self {
        let mut statements: HashMap<&str, Vec<&Triple>> = HashMap::new();
        let mut mentions: HashMap<&str, (usize, &Triple)> = HashMap::new();
        for triple in triples {
            if let NamedOrBlankNode::BlankNode(node) = &triple.subject {
                statements.entry(node.as_str()).or_default().push(triple);
            }
            if let Term::BlankNode(node) = &triple.object {
                mentions.entry(node.as_str()).or_insert((0, triple)).0 += 1;
            }
        }
        let lists = lists(triples, &statements, &mentions);
        let mut nesting = Self { statements, nested: HashSet::new(), lists };
        let mut labelled: HashSet<&str> = HashSet::new();
        // First nodes that IRIs lead to and nodes with several mentions, then nodes in cycles.
        let mentioned_once = |node: &str| mentions.get(node).is_some_and(|(count, _)| *count == 1);
        for circles in [false, true] {
            for triple in triples {
                if let NamedOrBlankNode::BlankNode(node) = &triple.subject {
                    let node = node.as_str();
                    if nesting.nested.contains(node) || (!circles && mentioned_once(node)) {
                        continue;
                    }
                    labelled.insert(node);
                }
                nesting.follow(triple, &mentioned_once, &mut labelled);
            }
        }
        nesting
    }

    /// Nests the blank nodes in a statement of a subject at the top level.
    fn follow(
        &mut self,
        triple: &'a Triple,
        mentioned_once: &dyn Fn(&str) -> bool,
        labelled: &mut HashSet<&'a str>,
    ) {
        let mut due = vec![(triple, 0)];
        while let Some((triple, depth)) = due.pop() {
            let Term::BlankNode(node) = &triple.object else { continue };
            let node = node.as_str();
            if !mentioned_once(node) || labelled.contains(node) || self.nested.contains(node) {
                continue;
            }
            let depth = if depth < MAX_NESTING {
                self.nested.insert(node);
                depth + 1
            } else {
                labelled.insert(node);
                0
            };
            for triple in self.statements.get(node).into_iter().flatten() {
                // A list of any length is written in one row.
                let is_row = self.is_list(node) && triple.predicate == rdf::REST;
                due.push((triple, if is_row { depth - 1 } else { depth }));
            }
        }
    }

    pub(super) fn is_nested(&self, node: &str) -> bool {
        self.nested.contains(node)
    }

    pub(super) fn is_list(&self, node: &str) -> bool {
        self.nested.contains(node) && self.lists.contains(node)
    }
}

/// Cells from which `rdf:nil` is reached through cells with one item, one rest and one mention
/// each.
fn lists<'a>(
    triples: &'a [Triple],
    statements: &HashMap<&'a str, Vec<&'a Triple>>,
    mentions: &HashMap<&'a str, (usize, &'a Triple)>,
) -> HashSet<&'a str> {
    let is_cell = |node: &str| {
        let [one, other] = statements.get(node).map_or(&[][..], Vec::as_slice) else {
            return false;
        };
        let are = |first: &Triple, rest: &Triple| {
            first.predicate == rdf::FIRST && rest.predicate == rdf::REST
        };
        (are(one, other) || are(other, one))
            && mentions.get(node).is_some_and(|(count, _)| *count == 1)
    };
    let nil = Term::from(rdf::NIL);
    let mut lists = HashSet::new();
    for end in triples.iter().filter(|triple| triple.predicate == rdf::REST && triple.object == nil)
    {
        let mut rest = end;
        while let NamedOrBlankNode::BlankNode(node) = &rest.subject {
            let node = node.as_str();
            if !is_cell(node) || !lists.insert(node) {
                break;
            }
            let Some((_, mention)) = mentions.get(node) else { break };
            if mention.predicate != rdf::REST {
                break;
            }
            rest = mention;
        }
    }
    lists
}
