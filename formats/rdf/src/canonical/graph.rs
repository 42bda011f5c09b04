//! Statements as a graph of blank nodes, which are numbered in the order of the input.

use std::collections::HashMap;

use super::is_blank;
use crate::notation::statement::Statement;

/// Number of a blank node, in the order of first occurrences in the input.
pub(super) type Node = usize;

/// Statements without duplicates, with the blank nodes among their terms.
pub(super) struct Graph<'a> {
    pub(super) statements: Vec<Statement<'a>>,
    /// Subject and object of each statement, if they are blank nodes.
    pub(super) ends: Vec<(Option<Node>, Option<Node>)>,
    /// Number of blank nodes.
    pub(super) nodes: usize,
    outgoing: Lists,
    incoming: Lists,
}

/// A list of statements for each node, in one allocation.
struct Lists {
    starts: Vec<usize>,
    statements: Vec<usize>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(mut statements: Vec<Statement<'a>>) -> Self {
        let mut numbers: HashMap<&'a [u8], Node> = HashMap::new();
        for statement in &statements {
            for term in [statement.subject, statement.object] {
                if is_blank(term) {
                    let next = numbers.len();
                    numbers.entry(term).or_insert(next);
                }
            }
        }
        statements.sort_unstable();
        statements.dedup();
        let number = |term: &[u8]| if is_blank(term) { numbers.get(term).copied() } else { None };
        let ends: Vec<(Option<Node>, Option<Node>)> = statements
            .iter()
            .map(|statement| (number(statement.subject), number(statement.object)))
            .collect();
        let nodes = numbers.len();
        let outgoing = Lists::new(nodes, ends.iter().map(|(subject, _)| *subject));
        let incoming = Lists::new(nodes, ends.iter().map(|(_, object)| *object));
        Self { statements, ends, nodes, outgoing, incoming }
    }

    /// Statements with this subject.
    pub(super) fn outgoing(&self, node: Node) -> &[usize] {
        self.outgoing.of(node)
    }

    /// Statements with this object.
    pub(super) fn incoming(&self, node: Node) -> &[usize] {
        self.incoming.of(node)
    }

    /// Blank nodes that are objects of this one; a node that is the object twice is returned twice.
    pub(super) fn children(&self, node: Node) -> impl Iterator<Item = Node> {
        self.outgoing(node).iter().filter_map(|statement| self.ends[*statement].1)
    }

    /// Blank nodes that have this one as object.
    pub(super) fn parents(&self, node: Node) -> impl Iterator<Item = Node> {
        self.incoming(node).iter().filter_map(|statement| self.ends[*statement].0)
    }
}

impl Lists {
    fn new(nodes: usize, of: impl Iterator<Item = Option<Node>> + Clone) -> Self {
        let mut starts = vec![0; nodes + 1];
        for node in of.clone().flatten() {
            starts[node + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut free = starts.clone();
        let mut statements = vec![0; starts[nodes]];
        for (statement, node) in of.enumerate() {
            if let Some(node) = node {
                statements[free[node]] = statement;
                free[node] += 1;
            }
        }
        Self { starts, statements }
    }

    fn of(&self, node: Node) -> &[usize] {
        &self.statements[self.starts[node]..self.starts[node + 1]]
    }
}
