//! Labels of blank nodes made of their content and surroundings.
//!
//! A label is made of the smallest part that distinguishes the node from all others in the
//! description, so that a change alters few labels:
//!
//! 1. The only blank object of a predicate is labelled by that predicate, independent of its
//!    statements.
//! 2. Other nodes are labelled by their predicates and objects. If several nodes have the same, the
//!    nodes around them count too, up to [`ROUNDS`] statements away: in a long list, labels do not
//!    change when an item is inserted.
//! 3. Nodes that are still equal are labelled by all their statements, recursively, then by the
//!    labels of the nodes that they are objects of. Trees that remain equal are numbered.

use std::collections::HashMap;

use super::graph::{Graph, Node};
use super::label::{Label, hash_part};

pub(super) type Hash = [u8; 32];

const FIRST: &[u8] = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#first>";
const REST: &[u8] = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#rest>";

/// Distance in statements up to which the surroundings of a node may distinguish it.
const ROUNDS: usize = 4;

/// The label of each node. `None` for nodes that need a search, and for nodes connected with them
/// through nodes that their surroundings do not distinguish.
pub(super) fn labels(graph: &Graph<'_>) -> Vec<Option<Label>> {
    let (mut content, mut labels) = surroundings(graph);
    if labels.iter().all(Option::is_some) {
        return labels;
    }
    // From here on, nodes with a label are treated as IRIs: their labels are final.
    let open = Open { graph, is_open: labels.iter().map(Option::is_none).collect() };
    let order = open.children_first();
    add_contents(graph, &order, &mut content);
    // Parents are above their children, whose content is part of theirs.
    let mut height = vec![0_usize; graph.nodes];
    let mut is_private_tree = vec![true; graph.nodes];
    for &node in &order {
        for child in open.children(node) {
            height[node] = height[node].max(height[child] + 1);
            is_private_tree[node] &= is_private_tree[child] && graph.incoming(child).len() == 1;
        }
    }
    let mut parents_first = order;
    parents_first.sort_by_key(|&node| (std::cmp::Reverse(height[node]), content[node]));

    let mut undecided: Vec<Node> = Vec::new();
    for same in parents_first.chunk_by(|a, b| content[*a] == content[*b]) {
        if let [node] = same {
            labels[*node] = Some(Label::of(&content[*node], 0));
            continue;
        }
        let mut keyed: Vec<(Hash, Node)> =
            same.iter().map(|&node| (position(graph, &labels, &content, node), node)).collect();
        keyed.sort_unstable();
        for tied in keyed.chunk_by(|a, b| a.0 == b.0) {
            // Trees without shared nodes can be exchanged, so their order does not matter.
            if tied.len() > 1 && !tied.iter().all(|(_, node)| is_private_tree[*node]) {
                undecided.extend(tied.iter().map(|(_, node)| *node));
            }
            for (copy, (key, node)) in tied.iter().enumerate() {
                labels[*node] = Some(Label::of(key, copy));
            }
        }
    }
    undecided.extend((0..graph.nodes).filter(|node| labels[*node].is_none()));
    open.forget_connected(&mut labels, undecided);
    labels
}

/// A hash of the surroundings of each node, and the labels of nodes that this hash distinguishes.
fn surroundings(graph: &Graph<'_>) -> (Vec<Hash>, Vec<Option<Label>>) {
    let mut labels = vec![None; graph.nodes];
    let mut hashes = vec![Hash::default(); graph.nodes];
    for (node, hash) in only_objects(graph) {
        hashes[node] = hash;
        labels[node] = Some(Label::of(&hash, 0));
    }
    let mut unnamed: Vec<Node> = (0..graph.nodes).filter(|node| labels[*node].is_none()).collect();
    for &node in &unnamed {
        hashes[node] = own_statements(graph, node);
    }
    for round in 0..=ROUNDS {
        if round > 0 {
            let next: Vec<Hash> =
                unnamed.iter().map(|&node| neighbours(graph, &hashes, node)).collect();
            for (&node, hash) in unnamed.iter().zip(next) {
                hashes[node] = hash;
            }
        }
        let mut counts: HashMap<Hash, usize> = HashMap::new();
        for &node in &unnamed {
            *counts.entry(hashes[node]).or_default() += 1;
        }
        unnamed.retain(|&node| {
            let is_unique = counts.get(&hashes[node]) == Some(&1);
            if is_unique {
                labels[node] = Some(Label::of(&hashes[node], 0));
            }
            !is_unique
        });
        if unnamed.is_empty() {
            break;
        }
    }
    (hashes, labels)
}

/// Nodes that are the only blank object of a predicate of an IRI, or of another such node: for
/// example, the one address of a person. Their labels are made of the path there, and do not depend
/// on their statements. Cells of lists are excluded, because their position changes most often.
fn only_objects(graph: &Graph<'_>) -> Vec<(Node, Hash)> {
    let is_only = |statement: usize, node: Node| {
        // Statements with the same subject and predicate are adjacent.
        let beside = [statement.checked_sub(1), Some(statement + 1)];
        let has_another = beside.into_iter().flatten().any(|other| {
            graph.ends.get(other).is_some_and(|ends| ends.1.is_some())
                && key(graph, other) == key(graph, statement)
        });
        let is_cell =
            graph.outgoing(node).iter().any(|own| graph.statements[*own].predicate == FIRST);
        graph.incoming(node).len() == 1 && !has_another && !is_cell
    };
    let name = |from: &[u8], statement: usize| {
        let mut buffer = b"only".to_vec();
        hash_part(&mut buffer, from);
        hash_part(&mut buffer, graph.statements[statement].predicate);
        *blake3::hash(&buffer).as_bytes()
    };
    let mut found: Vec<(Node, Hash)> = Vec::new();
    for (statement, ends) in graph.ends.iter().enumerate() {
        if let (None, Some(node)) = *ends
            && is_only(statement, node)
        {
            found.push((node, name(graph.statements[statement].subject, statement)));
        }
    }
    let mut next = 0;
    while let Some(&(from, hash)) = found.get(next) {
        next += 1;
        for &statement in graph.outgoing(from) {
            if let Some(node) = graph.ends[statement].1.filter(|node| is_only(statement, *node)) {
                found.push((node, name(&hash, statement)));
            }
        }
    }
    found
}

fn key<'a>(graph: &Graph<'a>, statement: usize) -> [&'a [u8]; 2] {
    let written = &graph.statements[statement];
    [written.subject, written.predicate]
}

/// A hash of a node's statements without blank objects. The end of a list is left out, so that the
/// label of the last item does not change when another item is appended.
fn own_statements(graph: &Graph<'_>, node: Node) -> Hash {
    let is_own = |statement: &&usize| {
        graph.ends[**statement].1.is_none() && graph.statements[**statement].predicate != REST
    };
    hash_statements(graph, graph.outgoing(node).iter().filter(is_own))
}

/// The statements of a subject must be in order.
fn hash_statements<'s>(graph: &Graph<'_>, statements: impl Iterator<Item = &'s usize>) -> Hash {
    let mut buffer = b"own".to_vec();
    for &statement in statements {
        hash_part(&mut buffer, graph.statements[statement].predicate);
        hash_part(&mut buffer, graph.statements[statement].object);
    }
    *blake3::hash(&buffer).as_bytes()
}

/// A hash of the surroundings of a node and of the surroundings of its neighbours.
fn neighbours(graph: &Graph<'_>, hashes: &[Hash], node: Node) -> Hash {
    let outgoing = graph.outgoing(node).iter().map(|&statement| {
        let written = &graph.statements[statement];
        match graph.ends[statement].1 {
            Some(object) => (0, written.predicate, hashes[object].as_slice()),
            None => (1, written.predicate, written.object),
        }
    });
    let incoming = graph.incoming(node).iter().map(|&statement| {
        let written = &graph.statements[statement];
        match graph.ends[statement].0 {
            Some(subject) => (2, written.predicate, hashes[subject].as_slice()),
            None => (3, written.predicate, written.subject),
        }
    });
    let mut parts: Vec<(u8, &[u8], &[u8])> = outgoing.chain(incoming).collect();
    parts.sort_unstable();
    let mut buffer = b"neighbours".to_vec();
    buffer.extend_from_slice(&hashes[node]);
    for (kind, predicate, other) in parts {
        buffer.push(kind);
        hash_part(&mut buffer, predicate);
        hash_part(&mut buffer, other);
    }
    *blake3::hash(&buffer).as_bytes()
}

/// A hash of all statements of each node, recursively; `None` for nodes with a path into a cycle.
/// It does not depend on the rest of the description.
pub(super) fn whole_contents(graph: &Graph<'_>) -> Vec<Option<Hash>> {
    let open = Open { graph, is_open: vec![true; graph.nodes] };
    let order = open.children_first();
    let mut content: Vec<Hash> = (0..graph.nodes)
        .map(|node| {
            let ground = graph.outgoing(node).iter();
            let ground = ground.filter(|statement| graph.ends[**statement].1.is_none());
            hash_statements(graph, ground)
        })
        .collect();
    add_contents(graph, &order, &mut content);
    let mut contents = vec![None; graph.nodes];
    for node in order {
        contents[node] = Some(content[node]);
    }
    contents
}

/// The nodes that their surroundings do not distinguish.
struct Open<'g, 'a> {
    graph: &'g Graph<'a>,
    is_open: Vec<bool>,
}

impl Open<'_, '_> {
    fn children(&self, node: Node) -> impl Iterator<Item = Node> {
        self.graph.children(node).filter(|child| self.is_open[*child])
    }

    fn parents(&self, node: Node) -> impl Iterator<Item = Node> {
        self.graph.parents(node).filter(|parent| self.is_open[*parent])
    }

    /// Nodes without a path into a cycle, each after its children.
    fn children_first(&self) -> Vec<Node> {
        let nodes = || (0..self.graph.nodes).filter(|node| self.is_open[*node]);
        let mut missing = vec![0_usize; self.graph.nodes];
        for node in nodes() {
            missing[node] = self.children(node).count();
        }
        let mut order: Vec<Node> = nodes().filter(|node| missing[*node] == 0).collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for parent in self.parents(node) {
                missing[parent] -= 1;
                if missing[parent] == 0 {
                    order.push(parent);
                }
            }
        }
        order
    }

    /// Removes the labels of nodes, and of all nodes that are connected with them.
    fn forget_connected(&self, labels: &mut [Option<Label>], from: Vec<Node>) {
        let mut is_forgotten = vec![false; self.graph.nodes];
        let mut pending = from;
        while let Some(node) = pending.pop() {
            if !std::mem::replace(&mut is_forgotten[node], true) {
                labels[node] = None;
                pending.extend(self.children(node).chain(self.parents(node)));
            }
        }
    }
}

/// Adds the hashes of each node's objects to the node's hash, recursively.
fn add_contents(graph: &Graph<'_>, order: &[Node], content: &mut [Hash]) {
    let mut buffer = Vec::new();
    for &node in order {
        let mut parts: Vec<(&[u8], Hash)> = graph
            .outgoing(node)
            .iter()
            .filter_map(|&statement| {
                let object = graph.ends[statement].1?;
                Some((graph.statements[statement].predicate, content[object]))
            })
            .collect();
        parts.sort_unstable();
        buffer.clear();
        buffer.extend_from_slice(b"content");
        buffer.extend_from_slice(&content[node]);
        for (predicate, object) in parts {
            hash_part(&mut buffer, predicate);
            buffer.extend_from_slice(&object);
        }
        content[node] = *blake3::hash(&buffer).as_bytes();
    }
}

/// A hash of the content of a node and of the statements that it is the object of.
fn position(graph: &Graph<'_>, labels: &[Option<Label>], content: &[Hash], node: Node) -> Hash {
    let mut parts: Vec<(Option<Label>, &[u8], &[u8])> = graph
        .incoming(node)
        .iter()
        .map(|&statement| {
            let written = &graph.statements[statement];
            match graph.ends[statement].0 {
                Some(parent) => (labels[parent], [].as_slice(), written.predicate),
                None => (None, written.subject, written.predicate),
            }
        })
        .collect();
    parts.sort_unstable();
    let mut buffer = b"position".to_vec();
    buffer.extend_from_slice(&content[node]);
    for (parent, subject, predicate) in parts {
        match parent {
            Some(label) => hash_part(&mut buffer, label.to_text().as_bytes()),
            None => hash_part(&mut buffer, subject),
        }
        hash_part(&mut buffer, predicate);
    }
    *blake3::hash(&buffer).as_bytes()
}
