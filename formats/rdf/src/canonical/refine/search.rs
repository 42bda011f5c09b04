//! Search for the least of the orders that refinement leaves open.

use super::super::work::{Exhausted, Work};
use super::part::Part;
use super::partition::Partition;

/// The order of nodes with the least list of statements.
pub(super) fn least_order(
    part: &Part<'_>,
    partition: &Partition,
    work: &mut Work,
) -> Result<Vec<usize>, Exhausted> {
    let mut search = Search {
        part,
        work,
        first: None,
        least: None,
        automorphisms: Vec::new(),
        path: Vec::new(),
    };
    search.descend(partition)?;
    search.least.map(|leaf| leaf.order).ok_or(Exhausted)
}

struct Search<'s, 'p> {
    part: &'s Part<'p>,
    work: &'s mut Work,
    first: Option<Leaf>,
    least: Option<Leaf>,
    /// The image of each node.
    automorphisms: Vec<Vec<usize>>,
    /// The nodes that were moved into new cells.
    path: Vec<usize>,
}

/// A discrete partition at the end of a path.
struct Leaf {
    path: Vec<usize>,
    order: Vec<usize>,
    edges: Vec<(usize, usize, usize)>,
}

impl Search<'_, '_> {
    /// Tries the nodes of a cell. Returns the length of the path at which the search continues:
    /// branches below a longer path are equal to branches that were tried.
    fn descend(&mut self, partition: &Partition) -> Result<usize, Exhausted> {
        let depth = self.path.len();
        self.work.spend(partition.order().len())?;
        let Some(cell) = partition.smallest_cell() else { return self.leaf(partition) };
        let mut tried: Vec<usize> = Vec::new();
        let mut is_equal_to_tried: Vec<bool> = Vec::new();
        for node in cell {
            if is_equal_to_tried.get(node) == Some(&true) {
                continue;
            }
            let mut refined = partition.clone();
            refined.individualize(node, &self.part.neighbours, self.work)?;
            self.path.push(node);
            let continue_at = self.descend(&refined)?;
            self.path.pop();
            if continue_at < depth {
                return Ok(continue_at);
            }
            tried.push(node);
            is_equal_to_tried = self.equal_to(&tried)?;
        }
        Ok(depth)
    }

    fn leaf(&mut self, partition: &Partition) -> Result<usize, Exhausted> {
        self.work.spend(2 * self.part.edges.len())?;
        let order = partition.order().to_vec();
        let edges = self.part.edges_in(&order);
        let leaf = Leaf { path: self.path.clone(), order, edges };
        for earlier in [&self.least, &self.first].into_iter().flatten() {
            if earlier.edges == leaf.edges {
                let mut automorphism = vec![0; leaf.order.len()];
                for (from, to) in earlier.order.iter().zip(&leaf.order) {
                    automorphism[*from] = *to;
                }
                self.automorphisms.push(automorphism);
                let common = earlier.path.iter().zip(&leaf.path).take_while(|(a, b)| a == b);
                return Ok(common.count());
            }
        }
        let depth = leaf.path.len();
        if self.first.is_none() {
            self.first = Some(Leaf {
                path: leaf.path.clone(),
                order: leaf.order.clone(),
                edges: leaf.edges.clone(),
            });
        }
        if self.least.as_ref().is_none_or(|least| leaf.edges < least.edges) {
            self.least = Some(leaf);
        }
        Ok(depth)
    }

    /// Images of these nodes under known automorphisms that leave the nodes of the path in place.
    fn equal_to(&mut self, tried: &[usize]) -> Result<Vec<bool>, Exhausted> {
        let keeps =
            |moves: &&Vec<usize>| self.path.iter().all(|on_path| moves[*on_path] == *on_path);
        let keeping: Vec<&Vec<usize>> = self.automorphisms.iter().filter(keeps).collect();
        self.work.spend(self.automorphisms.len() * (1 + self.path.len()))?;
        let mut is_equal = vec![false; self.part.nodes.len()];
        let mut pending = tried.to_vec();
        while let Some(from) = pending.pop() {
            if !std::mem::replace(&mut is_equal[from], true) {
                self.work.spend(1 + keeping.len())?;
                pending.extend(keeping.iter().map(|moves| moves[from]));
            }
        }
        Ok(is_equal)
    }
}
