//! Sketches compare two collections of any size in little memory, by the URIs with the smallest
//! hashes of each.
//!
//! Equal collections have the same URIs with the smallest hashes. If only one collection has a URI
//! with a hash below the threshold of both sketches, the collections differ. These URIs are also an
//! even sample, from which the resources to fetch are selected.

use abreast_webtypes::{Digests, W3cDatetime};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

/// Hash of a URI. Without the seed, a publisher cannot predict which URIs have small hashes.
pub(crate) fn hash(seed: u64, uri: &str) -> u64 {
    // FNV-1a, then a mixing step, so that small hashes are an even share.
    let mut state = seed ^ 0xcbf2_9ce4_8422_2325;
    for chunk in uri.as_bytes().chunks(8) {
        let mut word = [0_u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^= state >> 29;
    }
    state ^= uri.len() as u64;
    state = (state ^ (state >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    state ^ (state >> 32)
}

/// A resource with the metadata of its list entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) uri: String,
    pub(crate) digests: Digests,
    pub(crate) length: Option<u64>,
    pub(crate) media_type: String,
    pub(crate) encoding: String,
    pub(crate) lastmod: Option<W3cDatetime>,
    /// `at` of the list that contains the entry.
    pub(crate) at: Option<W3cDatetime>,
    pub(crate) document: String,
    pub(crate) place: (u64, u64),
}

/// The items with the smallest hashes, up to a limit.
#[derive(Clone, Debug)]
pub(crate) struct Sketch<T> {
    most: usize,
    items: BTreeMap<u64, T>,
}

impl<T> Sketch<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), items: BTreeMap::new() }
    }

    /// Whether the sketch would store an item with this hash.
    pub(crate) fn wants(&self, hash: u64) -> bool {
        self.items.len() < self.most
            || self.items.last_key_value().is_none_or(|(last, _)| hash <= *last)
    }

    /// Returns the item with this hash, and calls `make` if it is missing. `None` if the hash is
    /// too large for the sketch.
    pub(crate) fn entry(&mut self, hash: u64, make: impl FnOnce() -> T) -> Option<&mut T> {
        if !self.wants(hash) {
            return None;
        }
        self.items.entry(hash).or_insert_with(make);
        if self.items.len() > self.most {
            self.items.pop_last();
        }
        self.items.get_mut(&hash)
    }

    /// The sketch contains all items with hashes up to this one.
    pub(crate) fn threshold(&self) -> u64 {
        if self.items.len() < self.most {
            u64::MAX
        } else {
            self.items.last_key_value().map_or(0, |(last, _)| *last)
        }
    }

    /// Removes the item with this hash.
    pub(crate) fn remove(&mut self, hash: u64) {
        self.items.remove(&hash);
    }

    pub(crate) fn get(&self, hash: u64) -> Option<&T> {
        self.items.get(&hash)
    }

    /// The items, sorted by ascending hash.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.items.iter().map(|(hash, item)| (*hash, item))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds the items of another sketch; `join` combines items with the same hash.
    pub(crate) fn merge(&mut self, other: Self, mut join: impl FnMut(&mut T, T)) {
        for (hash, item) in other.items {
            let mut item = Some(item);
            let mut made = false;
            let slot = self.entry(hash, || {
                made = true;
                item.take().expect("taken once")
            });
            if let (Some(slot), Some(item), false) = (slot, item, made) {
                join(slot, item);
            }
        }
    }
}

/// First places of URIs, to find duplicates. While there are few URIs, all are stored; after that
/// an even share, which the seed selects.
#[derive(Debug)]
pub(crate) struct Seen {
    most: usize,
    seed: u64,
    /// Only hashes with at least this many leading zero bits are stored.
    zeros: u32,
    places: HashMap<u64, (u32, u32)>,
}

impl Seen {
    pub(crate) fn new(most: usize, seed: u64) -> Self {
        Self { most, seed, zeros: 0, places: HashMap::new() }
    }

    /// Adds the place of a URI in a group, and returns an earlier place if there is one.
    pub(crate) fn insert(
        &mut self,
        group: &str,
        uri: &str,
        place: (u32, u32),
    ) -> Option<(u32, u32)> {
        let hash = hash(hash(self.seed, group), uri);
        if hash.leading_zeros() < self.zeros {
            return None;
        }
        match self.places.entry(hash) {
            // The same place again: the document was fetched again after a failure.
            Entry::Occupied(before) => Some(*before.get()).filter(|at| *at != place),
            Entry::Vacant(free) => {
                free.insert(place);
                if self.places.len() > self.most {
                    self.zeros += 1;
                    let zeros = self.zeros;
                    self.places.retain(|hash, _| hash.leading_zeros() >= zeros);
                }
                None
            }
        }
    }

    /// Share of URIs that are checked: one in this many.
    pub(crate) fn one_in(&self) -> u64 {
        1 << self.zeros
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_collections_have_equal_sketches_in_any_order() {
        let uris: Vec<String> = (0..10_000).map(|n| format!("http://example.org/{n}")).collect();
        let sketch = |uris: &mut dyn Iterator<Item = &String>| {
            let mut sketch = Sketch::new(50);
            for uri in uris {
                sketch.entry(hash(7, uri), || uri.clone());
            }
            sketch
        };
        let (one, other) = (sketch(&mut uris.iter()), sketch(&mut uris.iter().rev()));
        assert!(one.iter().eq(other.iter()));
        assert_eq!(one.iter().count(), 50);
        // An even share: about 50 of 10,000 below the threshold.
        let share = one.threshold() as f64 / u64::MAX as f64;
        assert!((0.002..0.01).contains(&share), "{share}");
    }

    #[test]
    fn duplicates_are_found_in_bounded_memory() {
        let mut seen = Seen::new(1_000, 7);
        assert_eq!(seen.insert("a", "u", (1, 2)), None);
        assert_eq!(seen.insert("a", "u", (1, 2)), None);
        assert_eq!(seen.insert("b", "u", (3, 4)), None);
        assert_eq!(seen.insert("a", "u", (5, 6)), Some((1, 2)));
        let mut found = 0;
        for round in 0..2 {
            for n in 0..20_000 {
                found += usize::from(
                    seen.insert("c", &format!("http://example.org/{n}"), (round, n)).is_some(),
                );
                assert!(seen.places.len() <= 1_001);
            }
        }
        // A list published twice is found even when only a share of it is checked.
        assert!(found > 100, "{found}");
        assert!(seen.one_in() >= 16, "{}", seen.one_in());
    }
}
