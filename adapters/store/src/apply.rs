//! How a batch becomes changes, resources, pages and shards: the rules that every store shares.

use crate::book::Book;
use crate::descriptions;
use crate::links;
pub(crate) use crate::shards::Touch;
use crate::shards::{Cut, Due, LiveShard, entry_bytes};
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
    /// Is it deprecated as the new one is, or neither?
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
    /// What it was, in its stored form.
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
    /// What the resource was that left the set.
    pub(crate) removed: Option<&'e str>,
    /// What the writer adds.
    pub(crate) note: Option<&'e str>,
}

impl Entry<'_> {
    /// What the resource is, or was.
    pub(crate) fn description(&self) -> Option<&str> {
        self.new.map_or(self.removed, |new| new.description.as_deref())
    }
}

/// The rows of one set, inside one transaction.
pub(crate) trait Tables: VersionTables {
    /// Adds a resource; does nothing and says `false` when the key is known.
    fn insert(&mut self, key: &str, new: &Encoded, witness: &[u8], at: Position) -> Result<bool, Self::Error>;
    /// Compares a known resource with its new state.
    fn compare(&mut self, key: &str, new: &Encoded, witness: &[u8]) -> Result<Compared, Self::Error>;
    /// Gives a known resource another state.
    fn update(&mut self, key: &str, new: &Encoded, witness: &[u8], at: Position) -> Result<(), Self::Error>;
    /// Replaces a resource's witness, if the resource is known.
    fn set_witness(&mut self, key: &str, witness: &[u8]) -> Result<(), Self::Error>;
    /// Says where a known resource's bytes are kept.
    fn set_content(&mut self, key: &str, id: ContentId) -> Result<(), Self::Error>;
    /// Removes a resource; returns what it was if it was there.
    fn delete(&mut self, key: &str) -> Result<Option<Deleted>, Self::Error>;
    /// A resource's state and witness, if the resource is known.
    fn state(&mut self, key: &str) -> Result<Option<(State, Vec<u8>)>, Self::Error>;
    /// Adds a change to the log.
    fn record(&mut self, entry: &Entry) -> Result<(), Self::Error>;
    /// Remembers where a resource left the set.
    fn bury(&mut self, key: &str, at: Position) -> Result<(), Self::Error>;
    /// Forgets where a resource left the set, if it did.
    fn unbury(&mut self, key: &str) -> Result<(), Self::Error>;
    /// Stores a closed page and the open one after it.
    fn close_page(&mut self, closed: &Page, open: &Page) -> Result<(), Self::Error>;
    /// Finds the middle of a shard; `None` when nothing is on one side of it.
    fn middle(&mut self, shard: &LiveShard, end: Option<&str>) -> Result<Option<Cut>, Self::Error>;
    /// Stores a retired shard.
    fn retire(&mut self, shard: &LiveShard, end: Option<&str>) -> Result<(), Self::Error>;
    /// Remembers a writer's name for a change; `false` when it is remembered since after `expired`.
    fn remember(&mut self, name: &str, at: Position, now: Timestamp, expired: Timestamp) -> Result<bool, Self::Error>;
}

/// Records a batch.
pub(crate) fn append<T: Tables>(
    book: &mut Book,
    tables: &mut T,
    changes: &[Change],
    now: Timestamp,
) -> Result<Appended, T::Error> {
    let before = book.position;
    for change in changes {
        let time = next_time(book.time, now);
        let position = book.position.next();
        if let Some(name) = &change.idempotency_key {
            let expired = time.plus_micros(-(IDEMPOTENCY_AGE.as_micros() as i64));
            if !tables.remember(name, position, time, expired)? {
                continue;
            }
        }
        apply(book, tables, change, Touch { position, time })?;
    }
    let recorded = book.position.0 - before.0;
    Ok(Appended { head: book.position, recorded, unchanged: changes.len() as u64 - recorded })
}

/// Adds to the base of a new set.
pub(crate) fn import<T: Tables>(book: &mut Book, tables: &mut T, resources: &[Imported]) -> Result<(), T::Error> {
    let touch = Touch { position: Position(0), time: book.created };
    for resource in resources {
        put(book, tables, &resource.key, &Encoded::new(&resource.state), &resource.witness, touch)?;
    }
    Ok(())
}

/// Applies one change, and records it unless it changes nothing.
fn apply<T: Tables>(book: &mut Book, tables: &mut T, change: &Change, touch: Touch) -> Result<(), T::Error> {
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
        Action::Remove => return remove(book, tables, change, Kind::Remove, touch),
        Action::Delete => return remove(book, tables, change, Kind::Delete, touch),
    };
    let Some(kind) = put(book, tables, key, &new, witness, touch)? else { return Ok(()) };
    let kind = if kind == Kind::Create { first } else { kind };
    if first == kind {
        tables.unbury(key)?;
    }
    let note = descriptions::write_note(change.summary.as_deref(), replaced_by);
    let Touch { position, time } = touch;
    record(book, tables, &Entry { position, time, kind, key, new: Some(&new), removed: None, note: note.as_deref() })
}

/// Removes a resource, if it is there.
fn remove<T: Tables>(
    book: &mut Book,
    tables: &mut T,
    change: &Change,
    kind: Kind,
    touch: Touch,
) -> Result<(), T::Error> {
    let key = change.key.as_str();
    let Some(old) = tables.delete(key)? else { return Ok(()) };
    book.resources -= 1;
    book.shards.deleted(key, old.bytes, touch);
    versions::let_go(book, tables, old.content)?;
    versions::record(book, tables, key, touch, None)?;
    tables.bury(key, touch.position)?;
    let note = descriptions::write_note(change.summary.as_deref(), &[]);
    let (removed, note) = (old.description.as_deref(), note.as_deref());
    let Touch { position, time } = touch;
    record(book, tables, &Entry { position, time, kind, key, new: None, removed, note })
}

/// Creates, updates or deprecates a resource; `None` when it was so already. An import does the same at position 0.
fn put<T: Tables>(
    book: &mut Book,
    tables: &mut T,
    key: &str,
    new: &Encoded,
    witness: &[u8],
    touch: Touch,
) -> Result<Option<Kind>, T::Error> {
    let bytes = new.bytes(key);
    if tables.insert(key, new, witness, touch.position)? {
        book.resources += 1;
        let due = book.shards.inserted(key, bytes, touch);
        cut(book, tables, due)?;
        versions::hold(book, tables, Some(new))?;
        versions::record(book, tables, key, touch, Some(new))?;
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
            versions::let_go(book, tables, old.content)?;
            versions::hold(book, tables, Some(new))?;
            versions::found_content(book, tables, key, old.position, new)?;
        }
        return Ok(None);
    }
    tables.update(key, new, witness, touch.position)?;
    let due = book.shards.updated(key, old.bytes, bytes, touch);
    cut(book, tables, due)?;
    versions::let_go(book, tables, old.content)?;
    versions::hold(book, tables, Some(new))?;
    versions::record(book, tables, key, touch, Some(new))?;
    Ok(Some(if new.deprecated.is_some() && !old.same_deprecation { Kind::Deprecate } else { Kind::Update }))
}

fn record<T: Tables>(book: &mut Book, tables: &mut T, entry: &Entry) -> Result<(), T::Error> {
    if let Some(closed) = book.close_before(entry.time) {
        tables.close_page(&closed, &book.page.page())?;
    }
    tables.record(entry)?;
    if let Some(closed) = book.recorded(entry.position, entry.time) {
        tables.close_page(&closed, &book.page.page())?;
    }
    Ok(())
}

fn cut<T: Tables>(book: &mut Book, tables: &mut T, due: Due) -> Result<(), T::Error> {
    let Due::Cut(place) = due else { return Ok(()) };
    let end = book.shards.end_of(place).map(str::to_owned);
    if let Some(cut) = tables.middle(&book.shards.list()[place], end.as_deref())? {
        let retired = book.shards.cut(place, cut);
        tables.retire(&retired, end.as_deref())?;
    }
    Ok(())
}
