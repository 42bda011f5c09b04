//! How does a batch become changes, resources, pages and shards? The rules that every store shares.

use crate::book::Book;
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
}

impl<'s> Encoded<'s> {
    pub(crate) fn new(state: &'s State) -> Self {
        Self { state, digests: state.digests.to_bytes(), links: links::write(&state.links) }
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
    /// Adds a change to the log; a removal has no state.
    fn record(
        &mut self,
        at: Position,
        time: Timestamp,
        kind: Kind,
        key: &str,
        new: Option<&Encoded>,
    ) -> Result<(), Self::Error>;
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
        let touch = Touch { position, time };
        let key = change.key.as_str();
        match &change.action {
            Action::Put { state, witness } => {
                let new = Encoded::new(state);
                if let Some(kind) = put(book, tables, key, &new, witness, touch)? {
                    record(book, tables, touch, kind, key, Some(&new))?;
                }
            }
            Action::Delete => {
                if let Some(old) = tables.delete(key)? {
                    book.resources -= 1;
                    book.shards.deleted(key, old.bytes, touch);
                    versions::let_go(book, tables, old.content)?;
                    versions::record(book, tables, key, touch, None)?;
                    record(book, tables, touch, Kind::Delete, key, None)?;
                }
            }
        }
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

/// Creates or updates a resource; `None` when its state was that already.
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
    if old.same_state {
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
    Ok(Some(Kind::Update))
}

fn record<T: Tables>(
    book: &mut Book,
    tables: &mut T,
    touch: Touch,
    kind: Kind,
    key: &str,
    new: Option<&Encoded>,
) -> Result<(), T::Error> {
    if let Some(closed) = book.close_before(touch.time) {
        tables.close_page(&closed, &book.page.page())?;
    }
    tables.record(touch.position, touch.time, kind, key, new)?;
    if let Some(closed) = book.recorded(touch.position, touch.time) {
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
