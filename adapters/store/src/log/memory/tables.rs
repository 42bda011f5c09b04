//! A set's rows in memory, in ordered maps, for tests.

use crate::log::descriptions;
use crate::log::set_rows::{
    Encoded, LogRow, RowWrite, StoredRow, StoredRows, Tables, VersionTables, document_bytes,
};
use crate::log::set_state::SetState;
use crate::log::shards::{LiveShard, SplitPoint};
use crate::log::version_state::{Counted, Dropped, PastChange};
use crate::log::versions;
use abreast_core::batch::{Name, Now};
use abreast_core::{
    Beginning, ChangeRecord, ContentId, KeyRange, Page, Position, Resource, ShardId, State, Version,
};
use abreast_webtypes::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;

/// A set with its rows.
pub(crate) struct MemorySet {
    pub(crate) slug: String,
    pub(crate) beginning: Beginning,
    pub(crate) set_state: SetState,
    pub(crate) tables: MemoryTables,
}

/// The rows of a set. Rows that readers visit are shared, so that the lock can be released before a
/// visit.
#[derive(Default)]
pub(crate) struct MemoryTables {
    pub(crate) resources: BTreeMap<String, Arc<Resource>>,
    pub(crate) changes: Vec<Arc<ChangeRecord>>,
    /// Positions at which resources left the set.
    pub(crate) tombstones: HashMap<String, Position>,
    pub(crate) closed_pages: Vec<Page>,
    pub(crate) retired: HashMap<ShardId, KeyRange>,
    /// By key and stored time.
    pub(crate) versions: HashMap<String, BTreeMap<Timestamp, Version>>,
    /// Length of stored contents in bytes, and the number of rows that need them.
    pub(crate) contents: BTreeMap<ContentId, (u64, u64)>,
    names: HashMap<String, Timestamp>,
}

impl MemoryTables {
    /// Whether a change is the latest of its resource.
    pub(crate) fn is_latest(&self, change: &ChangeRecord) -> bool {
        let live = self.resources.get(&change.key).map(|resource| resource.position);
        live.or_else(|| self.tombstones.get(&change.key).copied()) == Some(change.position)
    }

    /// The present content of a resource as a version; `created` is the set's creation time.
    pub(crate) fn current_version(&self, key: &str, created: Timestamp) -> Option<Version> {
        let resource = self.resources.get(key)?;
        let time = match resource.position.0.checked_sub(1) {
            None => created,
            Some(place) => self.changes.get(usize::try_from(place).ok()?)?.time,
        };
        versions::current(resource, time)
    }

    /// Resources whose keys are in a range.
    pub(crate) fn range<'t>(
        &'t self,
        start: &str,
        end: Option<&str>,
    ) -> impl Iterator<Item = (&'t String, &'t Arc<Resource>)> {
        let empty = end.is_some_and(|end| end <= start);
        let end = if empty { Some(start) } else { end };
        self.resources.range::<str, _>((
            Bound::Included(start),
            end.map_or(Bound::Unbounded, Bound::Excluded),
        ))
    }
}

/// The row of a resource.
fn stored(key: &str, new: &Encoded, now: &Now<'_>) -> Arc<Resource> {
    let mut state = State { content: now.held.content, ..new.state.clone() };
    state.digests.unknown.clear();
    Arc::new(Resource {
        key: key.to_owned(),
        state,
        witness: now.witness.to_vec(),
        position: now.position,
        deprecated: now.deprecated.map(<[String]>::to_vec),
    })
}

impl Tables for MemoryTables {
    type Row = Arc<Resource>;

    fn rows<'k>(&mut self, keys: &[&'k str]) -> Result<StoredRows<'k, Arc<Resource>>, Infallible> {
        let found = keys.iter().filter_map(|key| {
            let resource = Arc::clone(self.resources.get(*key)?);
            let bytes = document_bytes(key, &resource.state);
            Some((*key, StoredRow { resource, bytes, is_damaged: false }))
        });
        Ok(found.collect())
    }

    fn names<'k>(&mut self, names: &[&'k str]) -> Result<HashMap<&'k str, Timestamp>, Infallible> {
        Ok(names.iter().filter_map(|name| Some((*name, *self.names.get(*name)?))).collect())
    }

    fn record(&mut self, changes: &[LogRow<'_>]) -> Result<(), Infallible> {
        let stored = "what was written can be read";
        for change in changes {
            let state = change.new.map(|new| {
                let mut state = State { content: new.content, ..new.state.clone() };
                state.digests.unknown.clear();
                state
            });
            let note =
                change.note.as_deref().map(|note| descriptions::read_note(note).expect(stored));
            let note = note.unwrap_or_default();
            self.changes.push(Arc::new(ChangeRecord {
                position: change.position,
                time: change.time,
                kind: change.kind,
                key: change.key.to_owned(),
                state,
                removed: change
                    .removed
                    .as_deref()
                    .map(|removed| descriptions::read(removed).expect(stored)),
                former_types: note.former_types,
                replaced_by: note.replaced_by,
                summary: note.summary,
            }));
        }
        Ok(())
    }

    fn close_pages(&mut self, closed: &[Page], _open: &Page) -> Result<(), Infallible> {
        self.closed_pages.extend_from_slice(closed);
        Ok(())
    }

    fn write(&mut self, rows: &[(&str, RowWrite<'_>)]) -> Result<(), Infallible> {
        for (key, write) in rows {
            match write {
                RowWrite::Insert(new, now) | RowWrite::Update(new, now) => {
                    self.resources.insert((*key).to_owned(), stored(key, new, now));
                }
                RowWrite::Refresh(now) => {
                    if let Some(resource) = self.resources.get_mut(*key).map(Arc::make_mut) {
                        resource.witness = now.witness.to_vec();
                        resource.state.content = now.held.content;
                    }
                }
                RowWrite::Delete => drop(self.resources.remove(*key)),
            }
        }
        Ok(())
    }

    fn write_tombstones(
        &mut self,
        left: &[(&str, Position)],
        returned: &[&str],
    ) -> Result<(), Infallible> {
        for key in returned {
            self.tombstones.remove(*key);
        }
        self.tombstones.extend(left.iter().map(|(key, position)| ((*key).to_owned(), *position)));
        Ok(())
    }

    fn remember(&mut self, names: &[Name<'_>]) -> Result<(), Infallible> {
        self.names.extend(names.iter().map(|name| (name.name.to_owned(), name.time)));
        Ok(())
    }

    fn set_witness(&mut self, key: &str, witness: &[u8]) -> Result<(), Infallible> {
        if let Some(resource) = self.resources.get_mut(key) {
            Arc::make_mut(resource).witness = witness.to_vec();
        }
        Ok(())
    }

    fn middle(
        &mut self,
        shard: &LiveShard,
        end: Option<&str>,
    ) -> Result<Option<SplitPoint>, Infallible> {
        let (mut resources, mut bytes) = (0, 0);
        for (key, resource) in self.range(&shard.start, end) {
            if SplitPoint::is_due(shard, resources, bytes) {
                return Ok(Some(SplitPoint { key: key.clone(), resources, bytes }));
            }
            resources += 1;
            bytes += document_bytes(key, &resource.state);
        }
        Ok(None)
    }

    fn retire(&mut self, shard: &LiveShard, end: Option<&str>) -> Result<(), Infallible> {
        let range = KeyRange { start: shard.start.clone(), end: end.map(str::to_owned) };
        self.retired.insert(shard.id, range);
        Ok(())
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
        let mut state = new.map(|new| State { content: new.content, ..new.state.clone() });
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

    fn version_content(
        &mut self,
        key: &str,
        time: Timestamp,
    ) -> Result<Option<Dropped>, Infallible> {
        let found = self.versions.get(key).and_then(|versions| versions.get(&time));
        Ok(found.map(content_of))
    }

    fn time_of(&mut self, at: Position) -> Result<Option<Timestamp>, Infallible> {
        let place = usize::try_from(at.0).ok().and_then(|number| number.checked_sub(1));
        Ok(place.and_then(|place| self.changes.get(place)).map(|change| change.time))
    }

    fn count_references(&mut self, id: ContentId, counted: Counted) -> Result<i64, Infallible> {
        let before = self.contents.get(&id).map(|(length, needed)| (*needed as i64, *length));
        let Some((needed, length, grown)) = counted.apply(before) else { return Ok(0) };
        self.contents.insert(id, (length, needed as u64));
        Ok(grown)
    }

    fn changes_after(
        &mut self,
        after: Position,
        limit: usize,
    ) -> Result<Vec<PastChange>, Infallible> {
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

    fn drop_before(
        &mut self,
        key: &str,
        time: Timestamp,
        limit: usize,
    ) -> Result<Vec<Dropped>, Infallible> {
        let Some(versions) = self.versions.get_mut(key) else { return Ok(Vec::new()) };
        let times: Vec<_> = versions.range(..time).take(limit).map(|(time, _)| *time).collect();
        let dropped = times
            .iter()
            .filter_map(|time| versions.remove(time))
            .map(|one| content_of(&one))
            .collect();
        if versions.is_empty() {
            self.versions.remove(key);
        }
        Ok(dropped)
    }
}

fn content_of(version: &Version) -> Option<ContentId> {
    version.state.as_ref().and_then(|state| state.content)
}
