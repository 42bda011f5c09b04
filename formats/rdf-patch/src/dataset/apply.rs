//! Application of changes to a set of statements, and the changes between two sets.

use std::collections::HashSet;
use std::hash::BuildHasher;

use oxrdf::{Dataset, Quad};

use crate::syntax::row::Change;

/// A set of statements in memory.
pub trait QuadSet {
    /// Adds a statement; whether it was not there.
    fn insert(&mut self, quad: &Quad) -> bool;
    /// Removes a statement; whether it was there.
    fn remove(&mut self, quad: &Quad) -> bool;
    /// Adds a prefix; whether that changes anything. Sets without prefixes ignore it.
    fn insert_prefix(&mut self, _prefix: &str, _iri: &str) -> bool {
        false
    }
    /// Removes a prefix, and returns its IRI. Sets without prefixes ignore the call.
    fn remove_prefix(&mut self, _prefix: &str) -> Option<String> {
        None
    }
}

impl QuadSet for Dataset {
    fn insert(&mut self, quad: &Quad) -> bool {
        self.insert(quad)
    }

    fn remove(&mut self, quad: &Quad) -> bool {
        self.remove(quad)
    }
}

impl<S: BuildHasher> QuadSet for HashSet<Quad, S> {
    fn insert(&mut self, quad: &Quad) -> bool {
        !self.contains(quad) && self.insert(quad.clone())
    }

    fn remove(&mut self, quad: &Quad) -> bool {
        self.remove(quad)
    }
}

/// Applies the changes of one committed transaction in order, and returns the changes with an
/// effect. The reverse of the returned changes restores the set.
///
/// A statement that is added twice, or removed although it is not there, changes nothing.
pub fn apply(changes: &[Change], set: &mut impl QuadSet) -> Vec<Change> {
    let has_effect = |change: &&Change| match change {
        Change::Add(quad) => set.insert(quad),
        Change::Remove(quad) => set.remove(quad),
        Change::AddPrefix { prefix, iri } => set.insert_prefix(prefix, iri),
        Change::RemovePrefix { prefix } => set.remove_prefix(prefix).is_some(),
    };
    changes.iter().filter(has_effect).cloned().collect()
}

/// The changes that make the new set of the old one: all removals, then all additions, both in the
/// order of their text. Blank nodes are equal when their labels are.
pub fn between<'a>(
    old: impl IntoIterator<Item = &'a Quad>,
    new: impl IntoIterator<Item = &'a Quad>,
) -> Vec<Change> {
    let (old, new): (HashSet<&Quad>, HashSet<&Quad>) =
        (old.into_iter().collect(), new.into_iter().collect());
    let only = |one: &HashSet<&'a Quad>, other: &HashSet<&'a Quad>| {
        let mut quads: Vec<Quad> = one.difference(other).map(|quad| (*quad).clone()).collect();
        quads.sort_by_cached_key(ToString::to_string);
        quads
    };
    let removed = only(&old, &new).into_iter().map(Change::Remove);
    removed.chain(only(&new, &old).into_iter().map(Change::Add)).collect()
}
