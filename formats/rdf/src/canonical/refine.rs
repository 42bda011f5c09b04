//! Labels for connected parts that content alone does not distinguish: parts with cycles or shared
//! nodes.
//!
//! The nodes of each part are brought into an order that depends on the structure only. Colours are
//! refined by statements in both directions. If nodes with equal colours remain, each in turn is
//! given a new colour, and the least of the resulting graphs decides. Two equal results are an
//! automorphism, which shows that other branches are equal too.

mod part;
mod partition;
mod search;

use crate::canonical::refine::part::Part;
use std::collections::HashMap;

use super::graph::Graph;
use super::label::{Label, Naming};
use super::work::Work;
use partition::Partition;

/// Labels the remaining nodes.
pub(super) fn name_the_others(
    graph: &Graph<'_>,
    mut labels: Vec<Option<Label>>,
    work: &mut Work,
) -> (Vec<Label>, Naming) {
    let mut naming = Naming::ByContent;
    let mut copies: HashMap<blake3::Hash, usize> = HashMap::new();
    let mut local = vec![0; graph.nodes];
    for first in 0..graph.nodes {
        if labels[first].is_some() {
            continue;
        }
        let part = Part::connected_with(graph, &labels, first, &mut local);
        let (order, how) = order(&part, work);
        naming = naming.max(how);
        let form = part.hash(&order);
        let copy = copies.entry(form).or_default();
        for (place, &member) in order.iter().enumerate() {
            let mut content = b"member".to_vec();
            content.extend_from_slice(form.as_bytes());
            content.extend_from_slice(&(place as u64).to_le_bytes());
            labels[part.nodes[member]] = Some(Label::of(&content, *copy));
        }
        *copy += 1;
    }
    (labels.into_iter().map(Option::unwrap_or_default).collect(), naming)
}

/// The nodes in the order that decides their labels, and how the order was found.
fn order(part: &Part<'_>, work: &mut Work) -> (Vec<usize>, Naming) {
    let mut partition = Partition::by(&part.ground);
    if partition.refine_all(&part.neighbours, work).is_ok() {
        if partition.is_discrete() {
            return (partition.into_order(), Naming::Refined);
        }
        if let Ok(order) = search::least_order(part, &partition, work) {
            return (order, Naming::Searched);
        }
    }
    (partition.into_order_of_input(), Naming::Arbitrary)
}
