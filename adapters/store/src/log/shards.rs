//! The shards of a set: finding the shard of a key, and splitting a shard.

use abreast_core::{Position, ShardId, ShardRule};
use abreast_webtypes::Timestamp;
#[cfg(feature = "postgres")]
use std::collections::HashSet;

/// A shard in use. It ends at the start of the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiveShard {
    pub(crate) id: ShardId,
    pub(crate) start: String,
    pub(crate) resources: u64,
    pub(crate) bytes: u64,
    pub(crate) version: Position,
    pub(crate) time: Timestamp,
    /// Whether the shard differs from the stored row.
    pub(crate) dirty: bool,
}

/// The position at which to split a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SplitPoint {
    /// First key of the second half.
    pub(crate) key: String,
    /// Number of resources before the key.
    pub(crate) resources: u64,
    /// Estimated bytes of these resources in a document.
    pub(crate) bytes: u64,
}

impl SplitPoint {
    /// Whether to start a new shard before the next resource, after this number of resources and
    /// bytes.
    pub(crate) fn is_due(shard: &LiveShard, resources: u64, bytes: u64) -> bool {
        resources > 0 && (resources * 2 >= shard.resources || bytes * 2 >= shard.bytes)
    }
}

/// A change of a resource in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastChange {
    /// Position in the log; 0 for the base of a new set.
    pub(crate) position: Position,
    /// Time of the change.
    pub(crate) time: Timestamp,
}

/// The live shards of a set, which cover all keys without overlap.
#[derive(Clone, Debug)]
pub(crate) struct LiveShards {
    list: Vec<LiveShard>,
    next_id: u64,
    /// An upper bound of the keys in the last shard; `None` while the shard is empty.
    highest: Option<String>,
    rule: ShardRule,
    /// Index at which the last key was found: the next key is often in the same shard.
    recent: usize,
}

impl LiveShards {
    /// `list` in key order, the first starting at the empty key.
    pub(crate) fn new(
        list: Vec<LiveShard>,
        next_id: u64,
        highest: Option<String>,
        rule: ShardRule,
    ) -> Self {
        debug_assert!(list.first().is_some_and(|first| first.start.is_empty()));
        Self { list, next_id, highest, rule, recent: 0 }
    }

    /// The one shard of a new set.
    pub(crate) fn first(rule: ShardRule) -> Self {
        let shard = LiveShard {
            id: ShardId(1),
            start: String::new(),
            resources: 0,
            bytes: 0,
            version: Position(0),
            time: Timestamp::default(),
            dirty: true,
        };
        Self::new(vec![shard], 2, None, rule)
    }

    pub(crate) fn list(&self) -> &[LiveShard] {
        &self.list
    }

    /// Number of resources in all shards.
    pub(crate) fn resources(&self) -> u64 {
        self.list.iter().map(|shard| shard.resources).sum()
    }

    /// The end of the shard at an index.
    pub(crate) fn end_of(&self, place: usize) -> Option<&str> {
        self.list.get(place + 1).map(|next| next.start.as_str())
    }

    /// Marks all shards as stored.
    pub(crate) fn stored(&mut self) {
        for shard in &mut self.list {
            shard.dirty = false;
        }
    }

    fn place_of(&mut self, key: &str) -> usize {
        let here = self.recent;
        if self.list[here].start.as_str() > key || self.end_of(here).is_some_and(|end| end <= key) {
            self.recent = self.list.partition_point(|shard| shard.start.as_str() <= key) - 1;
        }
        self.recent
    }

    /// Whether a key is greater than the keys of all resources.
    pub(crate) fn is_beyond(&self, key: &str) -> bool {
        self.list.last().is_some_and(|last| last.start.as_str() <= key)
            && self.highest.as_deref().is_none_or(|highest| highest < key)
    }

    /// Index of a shard, if it is too large.
    pub(crate) fn full(&self, id: ShardId) -> Option<usize> {
        self.list.iter().position(|shard| shard.id == id).filter(|place| self.is_full(*place))
    }

    /// Counts an added resource. Returns its shard if the shard may be too large now.
    pub(crate) fn inserted(&mut self, key: &str, bytes: u64, touch: LastChange) -> Option<ShardId> {
        let place = self.place_of(key);
        let beyond = self.is_beyond(key);
        if beyond {
            match &mut self.highest {
                Some(highest) => {
                    highest.clear();
                    highest.push_str(key);
                }
                none => *none = Some(key.to_owned()),
            }
        }
        if beyond && self.is_full(place) {
            self.close_last_at(key, bytes, touch);
            return None;
        }
        let shard = &mut self.list[place];
        shard.resources += 1;
        shard.bytes += bytes;
        shard.touch(touch);
        // A shard that is filled in key order is closed by the first key after it, so that it never
        // changes again.
        (self.is_full(place) && !beyond).then(|| self.list[place].id)
    }

    /// Records changed properties of a resource. Returns its shard if the shard may be too large
    /// now.
    pub(crate) fn updated(
        &mut self,
        key: &str,
        old_bytes: u64,
        bytes: u64,
        touch: LastChange,
    ) -> Option<ShardId> {
        let place = self.place_of(key);
        let shard = &mut self.list[place];
        shard.bytes = (shard.bytes + bytes).saturating_sub(old_bytes);
        shard.touch(touch);
        let grown = bytes > old_bytes && shard.bytes >= self.rule.bytes && shard.resources > 1;
        grown.then_some(shard.id)
    }

    /// Counts a removed resource.
    pub(crate) fn deleted(&mut self, key: &str, bytes: u64, touch: LastChange) {
        let place = self.place_of(key);
        let shard = &mut self.list[place];
        shard.resources = shard.resources.saturating_sub(1);
        shard.bytes = shard.bytes.saturating_sub(bytes);
        shard.touch(touch);
    }

    /// Replaces a shard by its two halves, and returns the old shard.
    pub(crate) fn cut(&mut self, place: usize, cut: SplitPoint) -> LiveShard {
        let second = LiveShard {
            id: ShardId(self.next_id + 1),
            start: cut.key,
            resources: self.list[place].resources.saturating_sub(cut.resources),
            bytes: self.list[place].bytes.saturating_sub(cut.bytes),
            dirty: true,
            ..self.list[place].clone()
        };
        let first = LiveShard {
            id: ShardId(self.next_id),
            resources: cut.resources,
            bytes: cut.bytes,
            dirty: true,
            ..self.list[place].clone()
        };
        self.next_id += 2;
        let retired = std::mem::replace(&mut self.list[place], first);
        self.list.insert(place + 1, second);
        retired
    }

    /// Number of the next shard.
    #[cfg(feature = "postgres")]
    pub(crate) const fn next_id(&self) -> u64 {
        self.next_id
    }

    /// An upper bound of the keys in the last shard.
    #[cfg(feature = "postgres")]
    pub(crate) fn highest(&self) -> Option<&str> {
        self.highest.as_deref()
    }

    /// Takes over the shards that another writer changed: live ones, and the numbers of retired
    /// ones.
    #[cfg(feature = "postgres")]
    pub(crate) fn take_over(
        &mut self,
        live: Vec<LiveShard>,
        retired: &[ShardId],
        next_id: u64,
        highest: Option<String>,
    ) {
        let replaced: HashSet<ShardId> =
            live.iter().map(|shard| shard.id).chain(retired.iter().copied()).collect();
        self.list.retain(|shard| !replaced.contains(&shard.id));
        self.list.extend(live);
        self.list.sort_by(|one, other| one.start.cmp(&other.start));
        (self.next_id, self.highest, self.recent) = (next_id, highest, 0);
    }

    fn is_full(&self, place: usize) -> bool {
        let shard = &self.list[place];
        shard.resources >= self.rule.resources
            || (shard.bytes >= self.rule.bytes && shard.resources > 1)
    }

    fn close_last_at(&mut self, key: &str, bytes: u64, touch: LastChange) {
        if let Some(last) = self.list.last_mut() {
            last.dirty = true; // its end moved
        }
        self.list.push(LiveShard {
            id: ShardId(self.next_id),
            start: key.to_owned(),
            resources: 1,
            bytes,
            version: touch.position,
            time: touch.time,
            dirty: true,
        });
        self.next_id += 1;
        self.recent = self.list.len() - 1;
    }
}

impl LiveShard {
    fn touch(&mut self, touch: LastChange) {
        self.version = touch.position;
        self.time = touch.time;
        self.dirty = true;
    }
}

/// Estimated bytes of a resource's entry in a document: its markup, its URI, its digests and links.
pub(crate) fn entry_bytes(
    key: &str,
    media_type: usize,
    encoding: usize,
    digests: usize,
    links: usize,
) -> u64 {
    /// Elements, attributes, two instants and the base URI.
    const MARKUP: usize = 320;
    /// An escaped character is up to five bytes longer.
    const ESCAPE: usize = 5;
    let escaped =
        key.bytes().filter(|byte| matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\'')).count();
    (MARKUP + key.len() + escaped * ESCAPE + media_type + encoding + digests * 3 + links * 2) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOUCH: LastChange = LastChange { position: Position(1), time: Timestamp::MIN };
    const TARGET: ShardRule = ShardRule { resources: 3, bytes: 1_000 };

    fn starts(shards: &LiveShards) -> Vec<&str> {
        shards.list().iter().map(|shard| shard.start.as_str()).collect()
    }

    #[test]
    fn keys_in_order_fill_one_shard_after_another() {
        let mut shards = LiveShards::first(TARGET);
        for key in ["a", "b", "c", "d", "e", "f", "g"] {
            assert_eq!(shards.inserted(key, 1, TOUCH), None, "{key}");
        }
        assert_eq!(starts(&shards), ["", "d", "g"]);
        assert_eq!(
            shards.list().iter().map(|shard| shard.resources).collect::<Vec<_>>(),
            [3, 3, 1]
        );
    }

    #[test]
    fn a_key_inside_a_full_shard_cuts_it() {
        let mut shards = LiveShards::first(TARGET);
        for key in ["a", "b", "d"] {
            shards.inserted(key, 1, TOUCH);
        }
        assert_eq!(shards.inserted("c", 1, TOUCH), Some(ShardId(1)));
        let retired = shards.cut(0, SplitPoint { key: "c".into(), resources: 2, bytes: 2 });
        assert_eq!((retired.id, retired.resources), (ShardId(1), 4));
        assert_eq!(starts(&shards), ["", "c"]);
        assert_eq!(
            shards.list().iter().map(|shard| (shard.id.0, shard.resources)).collect::<Vec<_>>(),
            [(2, 2), (3, 2)]
        );
        assert_eq!(shards.inserted("b1", 1, TOUCH), Some(ShardId(2)));
    }

    #[test]
    fn large_entries_fill_a_shard_too() {
        let mut shards = LiveShards::first(TARGET);
        assert_eq!(shards.inserted("b", 900, TOUCH), None);
        assert_eq!(shards.inserted("a", 200, TOUCH), Some(ShardId(1)));
        let mut shards = LiveShards::first(TARGET);
        assert_eq!(shards.inserted("a", 5_000, TOUCH), None, "one resource cannot be cut");
        assert_eq!(shards.updated("a", 5_000, 6_000, TOUCH), None);
        assert_eq!(shards.inserted("b", 10, TOUCH), None);
        assert_eq!(shards.updated("b", 10, 20, TOUCH), Some(ShardId(1)));
    }
}
