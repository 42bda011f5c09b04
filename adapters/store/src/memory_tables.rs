//! A set's rows in memory, in ordered maps, for tests.

use crate::apply::{Compared, Deleted, Encoded, Entry, Tables};
use crate::descriptions;
use crate::set_state::SetState;
use crate::shards::{LiveShard, SplitPoint};
use crate::versions::{Dropped, PastChange, VersionTables};
use abreast_core::{Beginning, ChangeRecord, ContentId, KeyRange, Page, Position, Resource, ShardId, State, Version};
use abreast_webtypes::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;

/// One set.
pub(crate) struct MemorySet {
    pub(crate) slug: String,
    pub(crate) beginning: Beginning,
    pub(crate) set_state: SetState,
    pub(crate) tables: MemoryTables,
}

/// Its rows. Those that readers visit are shared, so that no lock is held meanwhile.
#[derive(Default)]
pub(crate) struct MemoryTables {
    pub(crate) resources: BTreeMap<String, Arc<Resource>>,
    pub(crate) changes: Vec<Arc<ChangeRecord>>,
    /// Where resources left the set.
    pub(crate) tombstones: HashMap<String, Position>,
    pub(crate) closed_pages: Vec<Page>,
    pub(crate) retired: HashMap<ShardId, KeyRange>,
    /// By key and stored time.
    pub(crate) versions: HashMap<String, BTreeMap<Timestamp, Version>>,
    /// Length of kept bytes, and how many rows need them.
    pub(crate) contents: BTreeMap<ContentId, (u64, u64)>,
    names: HashMap<String, Timestamp>,
}

impl MemoryTables {
    /// Resources of a range.
    pub(crate) fn range<'t>(
        &'t self,
        start: &str,
        end: Option<&str>,
    ) -> impl Iterator<Item = (&'t String, &'t Arc<Resource>)> {
        let empty = end.is_some_and(|end| end <= start);
        let end = if empty { Some(start) } else { end };
        self.resources.range::<str, _>((Bound::Included(start), end.map_or(Bound::Unbounded, Bound::Excluded)))
    }
}

fn replacements(new: &Encoded) -> Option<Vec<String>> {
    let stored = new.deprecated.as_deref()?;
    Some(descriptions::read_replacements(stored).expect("what was written can be read"))
}

fn bytes_of(resource: &Resource) -> u64 {
    Encoded::new(&resource.state).bytes(&resource.key)
}

impl Tables for MemoryTables {
    fn insert(&mut self, key: &str, new: &Encoded, witness: &[u8], at: Position) -> Result<bool, Infallible> {
        if self.resources.contains_key(key) {
            return Ok(false);
        }
        self.update(key, new, witness, at).map(|()| true)
    }

    fn compare(&mut self, key: &str, new: &Encoded, witness: &[u8]) -> Result<Compared, Infallible> {
        let old = &self.resources[key];
        let stored = Encoded::new(&old.state);
        let same_state = old.state.modified == new.state.modified
            && old.state.length == new.state.length
            && old.state.media_type == new.state.media_type
            && old.state.encoding == new.state.encoding
            && stored.digests == new.digests
            && stored.links == new.links
            && stored.description == new.description;
        Ok(Compared {
            same_state,
            same_deprecation: old.deprecated == replacements(new),
            same_witness: old.witness == witness,
            content: old.state.content,
            position: old.position,
            bytes: stored.bytes(key),
        })
    }

    fn update(&mut self, key: &str, new: &Encoded, witness: &[u8], at: Position) -> Result<(), Infallible> {
        let mut resource = Resource {
            key: key.to_owned(),
            state: new.state.clone(),
            witness: witness.to_vec(),
            position: at,
            deprecated: replacements(new),
        };
        resource.state.digests.unknown.clear();
        self.resources.insert(key.to_owned(), Arc::new(resource));
        Ok(())
    }

    fn set_witness(&mut self, key: &str, witness: &[u8]) -> Result<(), Infallible> {
        if let Some(resource) = self.resources.get_mut(key) {
            Arc::make_mut(resource).witness = witness.to_vec();
        }
        Ok(())
    }

    fn set_content(&mut self, key: &str, id: ContentId) -> Result<(), Infallible> {
        if let Some(resource) = self.resources.get_mut(key) {
            Arc::make_mut(resource).state.content = Some(id);
        }
        Ok(())
    }

    fn delete(&mut self, key: &str) -> Result<Option<Deleted>, Infallible> {
        let old = self.resources.remove(key);
        Ok(old.map(|old| Deleted {
            bytes: bytes_of(&old),
            content: old.state.content,
            description: descriptions::write(old.state.description.as_deref()),
        }))
    }

    fn state(&mut self, key: &str) -> Result<Option<(State, Vec<u8>)>, Infallible> {
        Ok(self.resources.get(key).map(|resource| (resource.state.clone(), resource.witness.clone())))
    }

    fn record(&mut self, entry: &Entry) -> Result<(), Infallible> {
        let mut state = entry.new.map(|new| new.state.clone());
        if let Some(state) = &mut state {
            state.digests.unknown.clear();
        }
        let stored = "what was written can be read";
        let (summary, replaced_by) =
            entry.note.map(|note| descriptions::read_note(note).expect(stored)).unwrap_or_default();
        self.changes.push(Arc::new(ChangeRecord {
            position: entry.position,
            time: entry.time,
            kind: entry.kind,
            key: entry.key.to_owned(),
            state,
            removed: entry.removed.map(|removed| descriptions::read(removed).expect(stored)),
            replaced_by,
            summary,
        }));
        Ok(())
    }

    fn add_tombstone(&mut self, key: &str, at: Position) -> Result<(), Infallible> {
        self.tombstones.insert(key.to_owned(), at);
        Ok(())
    }

    fn remove_tombstone(&mut self, key: &str) -> Result<(), Infallible> {
        self.tombstones.remove(key);
        Ok(())
    }

    fn close_page(&mut self, closed: &Page, _open: &Page) -> Result<(), Infallible> {
        self.closed_pages.push(*closed);
        Ok(())
    }

    fn middle(&mut self, shard: &LiveShard, end: Option<&str>) -> Result<Option<SplitPoint>, Infallible> {
        let (mut resources, mut bytes) = (0, 0);
        for (key, resource) in self.range(&shard.start, end) {
            if SplitPoint::is_due(shard, resources, bytes) {
                return Ok(Some(SplitPoint { key: key.clone(), resources, bytes }));
            }
            resources += 1;
            bytes += bytes_of(resource);
        }
        Ok(None)
    }

    fn retire(&mut self, shard: &LiveShard, end: Option<&str>) -> Result<(), Infallible> {
        let range = KeyRange { start: shard.start.clone(), end: end.map(str::to_owned) };
        self.retired.insert(shard.id, range);
        Ok(())
    }

    fn remember(&mut self, name: &str, _at: Position, now: Timestamp, expired: Timestamp) -> Result<bool, Infallible> {
        if self.names.get(name).is_some_and(|since| *since >= expired) {
            return Ok(false);
        }
        self.names.insert(name.to_owned(), now);
        Ok(true)
    }
}

impl VersionTables for MemoryTables {
    type Error = Infallible;

    fn add_version(
        &mut self,
        key: &str,
        at: Position,
        time: Timestamp,
        new: Option<&Encoded>,
    ) -> Result<(), Infallible> {
        let mut state = new.map(|new| new.state.clone());
        if let Some(state) = &mut state {
            state.digests.unknown.clear();
            state.links.clear();
            state.description = None;
        }
        let version = Version { time, position: at, state };
        self.versions.entry(key.to_owned()).or_default().insert(time, version);
        Ok(())
    }

    fn has_versions(&mut self, key: &str) -> Result<bool, Infallible> {
        Ok(self.versions.contains_key(key))
    }

    fn version_content(&mut self, key: &str, time: Timestamp) -> Result<Option<Dropped>, Infallible> {
        let found = self.versions.get(key).and_then(|versions| versions.get(&time));
        Ok(found.map(content_of))
    }

    fn time_of(&mut self, at: Position) -> Result<Option<Timestamp>, Infallible> {
        let place = usize::try_from(at.0).ok().and_then(|number| number.checked_sub(1));
        Ok(place.and_then(|place| self.changes.get(place)).map(|change| change.time))
    }

    fn need(&mut self, id: ContentId, length: u64, more: bool) -> Result<Option<u64>, Infallible> {
        let (known, needed) = self.contents.entry(id).or_default();
        if more {
            if *needed == 0 {
                *known = length;
            }
            *needed += 1;
            return Ok((*needed == 1).then_some(*known));
        }
        *needed = needed.saturating_sub(1);
        Ok((*needed == 0).then_some(*known))
    }

    fn changes_after(&mut self, after: Position, limit: usize) -> Result<Vec<PastChange>, Infallible> {
        let start = usize::try_from(after.0).unwrap_or(usize::MAX);
        let changes = self.changes.get(start..).unwrap_or_default().iter().take(limit);
        Ok(changes
            .map(|change| PastChange {
                position: change.position,
                time: change.time,
                kind: change.kind,
                key: change.key.clone(),
            })
            .collect())
    }

    fn newest(&mut self, key: &str, number: u32) -> Result<Option<Timestamp>, Infallible> {
        let place = number.saturating_sub(1) as usize;
        Ok(self.versions.get(key).and_then(|versions| versions.keys().rev().nth(place)).copied())
    }

    fn drop_before(&mut self, key: &str, time: Timestamp, limit: usize) -> Result<Vec<Dropped>, Infallible> {
        let Some(versions) = self.versions.get_mut(key) else { return Ok(Vec::new()) };
        let times: Vec<_> = versions.range(..time).take(limit).map(|(time, _)| *time).collect();
        let dropped = times.iter().filter_map(|time| versions.remove(time)).map(|one| content_of(&one)).collect();
        if versions.is_empty() {
            self.versions.remove(key);
        }
        Ok(dropped)
    }
}

fn content_of(version: &Version) -> Option<ContentId> {
    version.state.as_ref().and_then(|state| state.content)
}
