//! Ordered partitions of the nodes of a part, and their refinement.

use super::super::work::{Exhausted, Work};
use std::collections::VecDeque;

/// Cells of nodes in an order. A cell is identified by its start, which depends on the structure of
/// the part only. The order of nodes inside a cell has no meaning.
#[derive(Clone)]
pub(super) struct Partition {
    nodes: Vec<usize>,
    place: Vec<usize>,
    /// Start of the cell of each node.
    cell: Vec<usize>,
    /// Length of the cell that starts here; 0 elsewhere.
    length: Vec<usize>,
}

impl Partition {
    /// Puts nodes with equal keys into one cell; cells are in the order of their keys.
    pub(super) fn by<K: Ord>(keys: &[K]) -> Self {
        let count = keys.len();
        let mut nodes: Vec<usize> = (0..count).collect();
        nodes.sort_by(|a, b| keys[*a].cmp(&keys[*b]));
        let mut partition = Self {
            place: vec![0; count],
            cell: vec![0; count],
            length: vec![0; count],
            nodes: Vec::new(),
        };
        for (place, &node) in nodes.iter().enumerate() {
            partition.place[node] = place;
        }
        let mut start = 0;
        for same in nodes.chunk_by(|a, b| keys[*a] == keys[*b]) {
            partition.length[start] = same.len();
            for &node in same {
                partition.cell[node] = start;
            }
            start += same.len();
        }
        partition.nodes = nodes;
        partition
    }

    pub(super) fn is_discrete(&self) -> bool {
        self.length.iter().all(|length| *length == 1)
    }

    /// The nodes in the order of their cells. The partition must be discrete.
    pub(super) fn into_order(self) -> Vec<usize> {
        self.nodes
    }

    /// The nodes in the order of their cells, and of the input inside of a cell.
    pub(super) fn into_order_of_input(mut self) -> Vec<usize> {
        let cell = self.cell;
        self.nodes.sort_by_key(|node| (cell[*node], *node));
        self.nodes
    }

    pub(super) fn order(&self) -> &[usize] {
        &self.nodes
    }

    /// The first of the smallest cells with several nodes. Its nodes are in the order of the input.
    pub(super) fn smallest_cell(&self) -> Option<Vec<usize>> {
        let several = self.length.iter().enumerate().filter(|(_, length)| **length > 1);
        let (start, length) = several.min_by_key(|(start, length)| (**length, *start))?;
        let mut nodes = self.nodes[start..start + length].to_vec();
        nodes.sort_unstable();
        Some(nodes)
    }

    /// Refines by all cells.
    pub(super) fn refine_all(
        &mut self,
        neighbours: &[Vec<(usize, usize)>],
        work: &mut Work,
    ) -> Result<(), Exhausted> {
        let cells = self.length.iter().enumerate().filter(|(_, length)| **length > 0);
        let cells: VecDeque<usize> = cells.map(|(start, _)| start).collect();
        self.refine(cells, neighbours, work)
    }

    /// Moves a node into a new cell, before the others of its cell, and refines.
    pub(super) fn individualize(
        &mut self,
        node: usize,
        neighbours: &[Vec<(usize, usize)>],
        work: &mut Work,
    ) -> Result<(), Exhausted> {
        let start = self.cell[node];
        let length = self.length[start];
        self.swap_to(node, start);
        for place in start + 1..start + length {
            self.cell[self.nodes[place]] = start + 1;
        }
        self.length[start] = 1;
        self.length[start + 1] = length - 1;
        work.spend(length)?;
        self.refine(VecDeque::from([start]), neighbours, work)
    }

    fn swap_to(&mut self, node: usize, place: usize) {
        let (from, other) = (self.place[node], self.nodes[place]);
        self.nodes.swap(from, place);
        self.place[node] = place;
        self.place[other] = from;
    }

    /// Splits cells until nodes in the same cell have the same statements with each other cell.
    fn refine(
        &mut self,
        mut splitters: VecDeque<usize>,
        neighbours: &[Vec<(usize, usize)>],
        work: &mut Work,
    ) -> Result<(), Exhausted> {
        let mut is_waiting = vec![false; self.nodes.len()];
        for &start in &splitters {
            is_waiting[start] = true;
        }
        let mut seen: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        while let Some(splitter) = splitters.pop_front() {
            is_waiting[splitter] = false;
            let mut touched: Vec<usize> = Vec::new();
            for &node in &self.nodes[splitter..splitter + self.length[splitter]] {
                work.spend(1 + 2 * neighbours[node].len())?;
                for &(edge, neighbour) in &neighbours[node] {
                    if seen[neighbour].is_empty() {
                        touched.push(neighbour);
                    }
                    seen[neighbour].push(edge);
                }
            }
            for &node in &touched {
                seen[node].sort_unstable();
            }
            touched
                .sort_unstable_by(|&a, &b| (self.cell[a], &seen[a]).cmp(&(self.cell[b], &seen[b])));
            let mut rest = touched.as_slice();
            while let Some(&first) = rest.first() {
                let start = self.cell[first];
                let end = rest.iter().position(|node| self.cell[*node] != start);
                let (of_cell, others) = rest.split_at(end.unwrap_or(rest.len()));
                rest = others;
                let cells = self.split(start, of_cell, &seen);
                let Some(largest) = cells
                    .iter()
                    .copied()
                    .max_by_key(|&cell| (self.length[cell], std::cmp::Reverse(cell)))
                else {
                    continue;
                };
                // The largest cell does not have to split others: the whole cell and the remaining
                // parts have the same effect.
                let was_waiting = is_waiting[start];
                for cell in cells {
                    if !is_waiting[cell] && (was_waiting || cell != largest) {
                        is_waiting[cell] = true;
                        splitters.push_back(cell);
                    }
                }
            }
            for node in touched {
                seen[node].clear();
            }
        }
        Ok(())
    }

    /// Splits a cell: untouched nodes first, then touched nodes, in the order of the seen
    /// statements. Returns the resulting cells, if the cell was split.
    fn split(&mut self, start: usize, touched: &[usize], seen: &[Vec<usize>]) -> Vec<usize> {
        let length = self.length[start];
        let untouched = length - touched.len();
        let is_split = untouched > 0
            || touched.first().map(|node| &seen[*node]) != touched.last().map(|node| &seen[*node]);
        if !is_split {
            return Vec::new();
        }
        for (place, &node) in touched.iter().enumerate().rev() {
            self.swap_to(node, start + untouched + place);
        }
        let mut cells = Vec::new();
        if untouched > 0 {
            self.length[start] = untouched;
            cells.push(start);
        }
        let mut cell = start + untouched;
        for same in touched.chunk_by(|a, b| seen[*a] == seen[*b]) {
            self.length[cell] = same.len();
            for &node in same {
                self.cell[node] = cell;
            }
            cells.push(cell);
            cell += same.len();
        }
        cells
    }
}
