//! How a batch becomes changes, resources, pages and shards: the rules that every store shares.

use crate::descriptions;
use crate::links;
use crate::set_state::SetState;
pub(crate) use crate::shards::LastChange;
use crate::shards::{LiveShard, ShardTask, SplitPoint, entry_bytes};
use crate::versions::{self, VersionTables};
use abreast_core::{Action, Appended, Change, ContentId, Imported, Kind, Page, Position, State, next_time};
use abreast_webtypes::Timestamp;
use std::time::Duration;

/// How long a writer's own name for a change is remembered.
pub(crate) const IDEMPOTENCY_AGE: Duration = Duration::from_secs(7 * 24 * 3_600);

/// A state and the parts of it that are stored in another form.
pub(crate) struct Encoded<'s> {
    pub(crate) state: &'s State,
    pub(crate) digests: Vec<u8>,
    pub(crate) links: Option<String>,
    pub(crate) description: Option<String>,
    /// URIs to use instead, when the resource is deprecated.
    pub(crate) deprecated: Option<String>,
}

impl<'s> Encoded<'s> {
    pub(crate) fn new(state: &'s State) -> Self {
        Self {
            state,
            digests: state.digests.to_bytes(),
            links: links::write(&state.links),
            description: descriptions::write(state.description.as_deref()),
            deprecated: None,
        }
    }

    /// The state of a resource that is deprecated.
    fn deprecated(state: &'s State, replaced_by: &[String]) -> Self {
        Self { deprecated: Some(descriptions::write_replacements(replaced_by)), ..Self::new(state) }
    }

    /// Where the bytes are kept.
    pub(crate) fn content(&self) -> Option<&[u8]> {
        self.state.content.as_ref().map(|id| id.as_bytes().as_slice())
    }

    pub(crate) fn bytes(&self, key: &str) -> u64 {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        entry_bytes(
            key,
            length(&self.state.media_type),
            length(&self.state.encoding),
            self.digests.len(),
            length(&self.links),
        )
    }
}

/// A stored resource, compared with the state that is to replace it.
pub(crate) struct Compared {
    pub(crate) same_state: bool,
    pub(crate) same_witness: bool,
    /// Whether it is deprecated exactly if the new one is.
    pub(crate) same_deprecation: bool,
    /// Where its bytes are kept.
    pub(crate) content: Option<ContentId>,
    /// Where it last changed.
    pub(crate) position: Position,
    /// About its size in a document.
    pub(crate) bytes: u64,
}

/// A resource that was removed.
pub(crate) struct Deleted {
    /// About its size in a document.
    pub(crate) bytes: u64,
    /// Where its bytes are kept.
    pub(crate) content: Option<ContentId>,
    /// Its previous state, in its stored form.
    pub(crate) description: Option<String>,
}

/// One change, as it is recorded.
pub(crate) struct Entry<'e> {
    pub(crate) position: Position,
    pub(crate) time: Timestamp,
    pub(crate) kind: Kind,
    pub(crate) key: &'e str,
    /// The state it leaves; `None` when the resource left the set.
    pub(crate) new: Option<&'e Encoded<'e>>,
    /// The last state of the removed resource.
    pub(crate) removed: Option<&'e str>,
    /// Description added by the writer.
    pub(crate) note: Option<&'e str>,
}

impl Entry<'_> {
    /// Description of the resource, current or last.
    pub(crate) fn description(&self) -> Option<&str> {
        self.new.map_or(self.removed, |new| new.description.as_deref())
    }
}

/// The rows of one set, inside one transaction.
pub(crate) trait Tables: VersionTables {
    /// Adds a resource; does nothing and returns `false` if the key exists.
    fn insert(&mut self, key: &str, new: &Encoded, witness: &[u8], at: Position) -> Result<bool, Self::Error>;
    /// Compares a known resource with its new state.
    fn compare(&mut self, key: &str, new: &Encoded, witness: &[u8]) -> Result<Compared, Self::Error>;
    /// Gives a known resource another state.
    fn update(&mut self, key: &str, new: &Encoded, witness: &[u8], at: Position) -> Result<(), Self::Error>;
    /// Replaces a resource's witness, if the resource is known.
    fn set_witness(&mut self, key: &str, witness: &[u8]) -> Result<(), Self::Error>;
    /// Sets the content of an existing resource.
    fn set_content(&mut self, key: &str, id: ContentId) -> Result<(), Self::Error>;
    /// Removes a resource; returns what it was if it was there.
    fn delete(&mut self, key: &str) -> Result<Option<Deleted>, Self::Error>;
    /// A resource's state and witness, if the resource is known.
    fn state(&mut self, key: &str) -> Result<Option<(State, Vec<u8>)>, Self::Error>;
    /// Adds a change to the log.
    fn record(&mut self, entry: &Entry) -> Result<(), Self::Error>;
    /// Remembers where a resource left the set.
    fn add_tombstone(&mut self, key: &str, at: Position) -> Result<(), Self::Error>;
    /// Forgets where a resource left the set, if it did.
    fn remove_tombstone(&mut self, key: &str) -> Result<(), Self::Error>;
    /// Stores a closed page and the open one after it.
    fn close_page(&mut self, closed: &Page, open: &Page) -> Result<(), Self::Error>;
    /// Finds the middle of a shard; `None` when nothing is on one side of it.
    fn middle(&mut self, shard: &LiveShard, end: Option<&str>) -> Result<Option<SplitPoint>, Self::Error>;
    /// Stores a retired shard.
    fn retire(&mut self, shard: &LiveShard, end: Option<&str>) -> Result<(), Self::Error>;
    /// Remembers a writer's name for a change; `false` when it is remembered since after `expired`.
    fn remember(&mut self, name: &str, at: Position, now: Timestamp, expired: Timestamp) -> Result<bool, Self::Error>;
}

/// Records a batch.
pub(crate) fn append<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    changes: &[Change],
    now: Timestamp,
) -> Result<Appended, T::Error> {
    let before = set_state.position;
    for change in changes {
        let time = next_time(set_state.time, now);
        let position = set_state.position.next();
        if let Some(name) = &change.idempotency_key {
            let expired = time.plus_micros(-(IDEMPOTENCY_AGE.as_micros() as i64));
            if !tables.remember(name, position, time, expired)? {
                continue;
            }
        }
        apply(set_state, tables, change, LastChange { position, time })?;
    }
    let recorded = set_state.position.0 - before.0;
    Ok(Appended { head: set_state.position, recorded, unchanged: changes.len() as u64 - recorded })
}

/// Adds to the base of a new set.
pub(crate) fn import<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    resources: &[Imported],
) -> Result<(), T::Error> {
    let touch = LastChange { position: Position(0), time: set_state.created };
    for resource in resources {
        put(set_state, tables, &resource.key, &Encoded::new(&resource.state), &resource.witness, touch)?;
    }
    Ok(())
}

/// Applies one change, and records it unless it changes nothing.
fn apply<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    change: &Change,
    touch: LastChange,
) -> Result<(), T::Error> {
    let key = change.key.as_str();
    let known;
    let (new, witness, first, replaced_by) = match &change.action {
        Action::Put { state, witness } => (Encoded::new(state), witness, Kind::Create, &[][..]),
        Action::Add { state, witness } => (Encoded::new(state), witness, Kind::Add, &[][..]),
        Action::Deprecate { state: given, replaced_by } => {
            known = if given.is_none() { tables.state(key)? } else { None };
            let Some((state, witness)) = given.as_ref().or(known.as_ref()) else { return Ok(()) };
            (Encoded::deprecated(state, replaced_by), witness, Kind::Deprecate, replaced_by.as_slice())
        }
        Action::Remove => return remove(set_state, tables, change, Kind::Remove, touch),
        Action::Delete => return remove(set_state, tables, change, Kind::Delete, touch),
    };
    let Some(kind) = put(set_state, tables, key, &new, witness, touch)? else { return Ok(()) };
    let kind = if kind == Kind::Create { first } else { kind };
    if first == kind {
        tables.remove_tombstone(key)?;
    }
    let note = descriptions::write_note(change.summary.as_deref(), replaced_by);
    let LastChange { position, time } = touch;
    record(
        set_state,
        tables,
        &Entry { position, time, kind, key, new: Some(&new), removed: None, note: note.as_deref() },
    )
}

/// Removes a resource, if it is there.
fn remove<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    change: &Change,
    kind: Kind,
    touch: LastChange,
) -> Result<(), T::Error> {
    let key = change.key.as_str();
    let Some(old) = tables.delete(key)? else { return Ok(()) };
    set_state.resources -= 1;
    set_state.shards.deleted(key, old.bytes, touch);
    versions::let_go(set_state, tables, old.content)?;
    versions::record(set_state, tables, key, touch, None)?;
    tables.add_tombstone(key, touch.position)?;
    let note = descriptions::write_note(change.summary.as_deref(), &[]);
    let (removed, note) = (old.description.as_deref(), note.as_deref());
    let LastChange { position, time } = touch;
    record(set_state, tables, &Entry { position, time, kind, key, new: None, removed, note })
}

/// Creates, updates or deprecates a resource; `None` when it was so already. An import does the same at position 0.
fn put<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    key: &str,
    new: &Encoded,
    witness: &[u8],
    touch: LastChange,
) -> Result<Option<Kind>, T::Error> {
    let bytes = new.bytes(key);
    if tables.insert(key, new, witness, touch.position)? {
        set_state.resources += 1;
        let due = set_state.shards.inserted(key, bytes, touch);
        cut(set_state, tables, due)?;
        versions::hold(set_state, tables, Some(new))?;
        versions::record(set_state, tables, key, touch, Some(new))?;
        return Ok(Some(Kind::Create));
    }
    let old = tables.compare(key, new, witness)?;
    // A state that is the same leaves a deprecation as it is.
    if old.same_state && (new.deprecated.is_none() || old.same_deprecation) {
        if !old.same_witness {
            tables.set_witness(key, witness)?;
        }
        if let Some(id) = new.state.content.filter(|id| old.content != Some(*id)) {
            tables.set_content(key, id)?;
            versions::let_go(set_state, tables, old.content)?;
            versions::hold(set_state, tables, Some(new))?;
            versions::found_content(set_state, tables, key, old.position, new)?;
        }
        return Ok(None);
    }
    tables.update(key, new, witness, touch.position)?;
    let due = set_state.shards.updated(key, old.bytes, bytes, touch);
    cut(set_state, tables, due)?;
    versions::let_go(set_state, tables, old.content)?;
    versions::hold(set_state, tables, Some(new))?;
    versions::record(set_state, tables, key, touch, Some(new))?;
    Ok(Some(if new.deprecated.is_some() && !old.same_deprecation { Kind::Deprecate } else { Kind::Update }))
}

fn record<T: Tables>(set_state: &mut SetState, tables: &mut T, entry: &Entry) -> Result<(), T::Error> {
    if let Some(closed) = set_state.close_before(entry.time) {
        tables.close_page(&closed, &set_state.page.page())?;
    }
    tables.record(entry)?;
    if let Some(closed) = set_state.recorded(entry.position, entry.time) {
        tables.close_page(&closed, &set_state.page.page())?;
    }
    Ok(())
}

fn cut<T: Tables>(set_state: &mut SetState, tables: &mut T, due: ShardTask) -> Result<(), T::Error> {
    let ShardTask::SplitPoint(place) = due else { return Ok(()) };
    let end = set_state.shards.end_of(place).map(str::to_owned);
    if let Some(cut) = tables.middle(&set_state.shards.list()[place], end.as_deref())? {
        let retired = set_state.shards.cut(place, cut);
        tables.retire(&retired, end.as_deref())?;
    }
    Ok(())
}
