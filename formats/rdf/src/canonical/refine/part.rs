//! The blank nodes that are refined together.

use crate::canonical::graph::{Graph, Node};
use crate::canonical::label::{Label, hash_part};
use std::borrow::Cow;
use std::collections::HashSet;

/// Blank nodes that statements connect. Here they are numbered from 0.
pub(super) struct Part<'a> {
    pub(super) nodes: Vec<Node>,
    /// The statements of each node with terms that are not blank, as bytes to compare.
    pub(super) ground: Vec<Vec<u8>>,
    predicates: Vec<&'a [u8]>,
    /// Subject, predicate and object.
    pub(super) edges: Vec<(usize, usize, usize)>,
    /// The neighbours of each node, with a number for the statement: twice the predicate's number,
    /// plus one if the neighbour is the object.
    pub(super) neighbours: Vec<Vec<(usize, usize)>>,
}

impl<'a> Part<'a> {
    pub(crate) fn connected_with(
        graph: &Graph<'a>,
        labels: &[Option<Label>],
        first: Node,
        local: &mut [usize],
    ) -> Self {
        let is_fixed = |node: &Node| labels[*node].is_some();
        let mut nodes = vec![first];
        let mut is_found: HashSet<Node> = [first].into();
        let mut next = 0;
        while let Some(&node) = nodes.get(next) {
            next += 1;
            let connected = graph.children(node).chain(graph.parents(node));
            nodes.extend(connected.filter(|other| !is_fixed(other) && is_found.insert(*other)));
        }
        nodes.sort_unstable();
        for (number, &node) in nodes.iter().enumerate() {
            local[node] = number;
        }

        let mut inner: Vec<usize> = Vec::new();
        let mut ground = Vec::with_capacity(nodes.len());
        for &node in &nodes {
            let mut facts: Vec<[Cow<'_, [u8]>; 3]> = Vec::new();
            let mut add = |how: &'static [u8], predicate: &'a [u8], term: Cow<'a, [u8]>| {
                facts.push([how.into(), predicate.into(), term]);
            };
            let name = |node: Node| labels[node].map(|label| label.to_text().into_bytes().into());
            for &statement in graph.outgoing(node) {
                let written = &graph.statements[statement];
                match graph.ends[statement].1.map(name) {
                    Some(None) => inner.push(statement),
                    Some(Some(object)) => add(b"states", written.predicate, object),
                    None => add(b"states", written.predicate, written.object.into()),
                }
            }
            for &statement in graph.incoming(node) {
                let written = &graph.statements[statement];
                match graph.ends[statement].0.map(name) {
                    Some(None) => {}
                    Some(Some(subject)) => add(b"object of", written.predicate, subject),
                    None => add(b"object of", written.predicate, written.subject.into()),
                }
            }
            facts.sort_unstable();
            let mut bytes = Vec::new();
            for part in facts.iter().flatten() {
                hash_part(&mut bytes, part);
            }
            ground.push(bytes);
        }

        let mut predicates: Vec<&'a [u8]> =
            inner.iter().map(|&statement| graph.statements[statement].predicate).collect();
        predicates.sort_unstable();
        predicates.dedup();
        let mut neighbours = vec![Vec::new(); nodes.len()];
        let mut edges = Vec::with_capacity(inner.len());
        for statement in inner {
            let (Some(subject), Some(object)) = graph.ends[statement] else { continue };
            let (subject, object) = (local[subject], local[object]);
            let predicate = predicates
                .binary_search(&graph.statements[statement].predicate)
                .unwrap_or_default();
            neighbours[object].push((2 * predicate, subject));
            neighbours[subject].push((2 * predicate + 1, object));
            edges.push((subject, predicate, object));
        }
        Self { nodes, ground, predicates, edges, neighbours }
    }

    /// A hash of the part with its nodes in this order.
    pub(crate) fn hash(&self, order: &[usize]) -> blake3::Hash {
        let mut content = b"part".to_vec();
        content.extend_from_slice(&(order.len() as u64).to_le_bytes());
        for &node in order {
            hash_part(&mut content, &self.ground[node]);
        }
        for (subject, predicate, object) in self.edges_in(order) {
            content.extend_from_slice(&(subject as u64).to_le_bytes());
            hash_part(&mut content, self.predicates[predicate]);
            content.extend_from_slice(&(object as u64).to_le_bytes());
        }
        blake3::hash(&content)
    }

    /// The statements between nodes, with the nodes numbered in this order.
    pub(crate) fn edges_in(&self, order: &[usize]) -> Vec<(usize, usize, usize)> {
        let mut place = vec![0; order.len()];
        for (number, &node) in order.iter().enumerate() {
            place[node] = number;
        }
        let renumbered = self.edges.iter().map(|&(s, p, o)| (place[s], p, place[o]));
        let mut edges: Vec<(usize, usize, usize)> = renumbered.collect();
        edges.sort_unstable();
        edges
    }
}
