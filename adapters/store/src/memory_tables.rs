//! How are a set's rows kept in memory? In ordered maps, for tests.

use crate::apply::{Compared, Encoded, Tables};
use crate::book::Book;
use crate::shards::{Cut, LiveShard};
use abreast_core::{ChangeRecord, KeyRange, Kind, Page, Position, Resource, ShardId};
use abreast_webtypes::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;

/// One set.
pub(crate) struct MemorySet {
    pub(crate) slug: String,
    pub(crate) book: Book,
    pub(crate) tables: MemoryTables,
}

/// Its rows. Those that readers visit are shared, so that no lock is held meanwhile.
#[derive(Default)]
pub(crate) struct MemoryTables {
    pub(crate) resources: BTreeMap<String, Arc<Resource>>,
    pub(crate) changes: Vec<Arc<ChangeRecord>>,
    pub(crate) closed_pages: Vec<Page>,
    pub(crate) retired: HashMap<ShardId, KeyRange>,
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

fn bytes_of(resource: &Resource) -> u64 {
    Encoded::new(&resource.state).bytes(&resource.key)
}

impl Tables for MemoryTables {
    type Error = Infallible;

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
            && stored.links == new.links;
        Ok(Compared { same_state, same_witness: old.witness == witness, bytes: stored.bytes(key) })
    }

    fn update(&mut self, key: &str, new: &Encoded, witness: &[u8], at: Position) -> Result<(), Infallible> {
        let mut resource =
            Resource { key: key.to_owned(), state: new.state.clone(), witness: witness.to_vec(), position: at };
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

    fn delete(&mut self, key: &str) -> Result<Option<u64>, Infallible> {
        Ok(self.resources.remove(key).map(|old| bytes_of(&old)))
    }

    fn record(
        &mut self,
        at: Position,
        time: Timestamp,
        kind: Kind,
        key: &str,
        new: Option<&Encoded>,
    ) -> Result<(), Infallible> {
        let mut state = new.map(|new| new.state.clone());
        if let Some(state) = &mut state {
            state.digests.unknown.clear();
        }
        self.changes.push(Arc::new(ChangeRecord { position: at, time, kind, key: key.to_owned(), state }));
        Ok(())
    }

    fn close_page(&mut self, closed: &Page, _open: &Page) -> Result<(), Infallible> {
        self.closed_pages.push(*closed);
        Ok(())
    }

    fn middle(&mut self, shard: &LiveShard, end: Option<&str>) -> Result<Option<Cut>, Infallible> {
        let (mut resources, mut bytes) = (0, 0);
        for (key, resource) in self.range(&shard.start, end) {
            if Cut::is_due(shard, resources, bytes) {
                return Ok(Some(Cut { key: key.clone(), resources, bytes }));
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
