//! Writes a decided batch (`abreast_core::batch`): changes, pages, shards, versions and rows.
//!
//! The rows of all keys are read once, before the decision, and written once. Shards that became
//! too large are split after all rows are written.

use crate::log::descriptions;
use crate::log::limits::damaged_row;
use crate::log::set_rows::{Encoded, LogRow, RowWrite, StoredRows};
use crate::log::set_state::SetState;
use crate::log::shards::LastChange;
use crate::log::tables::Tables;
use crate::log::versions;
use abreast_core::batch::{self, Decided, Entry, Held, Now, Row, Step, Write};
use abreast_core::{Action, Appended, Change, Imported, LogError, Position, Resource, ShardId};
use abreast_webtypes::Timestamp;
use std::collections::HashMap;

/// Records batches, as one. A refused batch changes nothing.
pub(crate) fn append<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    batches: &[&[Change]],
    now: Timestamp,
) -> Result<Vec<Result<Appended, LogError>>, T::Error> {
    let mut refused = Vec::with_capacity(batches.len());
    for batch in batches {
        refused.push(undecidable(tables, batch)?);
    }
    let accepted = batches.iter().zip(&refused).filter(|(_, refused)| refused.is_none());
    let changes: Vec<&Change> = accepted.flat_map(|(batch, _)| *batch).collect();
    let mut before = set_state.position;
    let mut heads = Vec::with_capacity(changes.len());
    for changes in changes.chunks(T::PART) {
        let all: Vec<&str> = changes.iter().map(|change| change.key.as_str()).collect();
        let stored = stored_rows(set_state, tables, &all)?;
        let names: Vec<&str> =
            changes.iter().filter_map(|change| change.idempotency_key.as_deref()).collect();
        let names = if names.is_empty() { HashMap::new() } else { tables.names(&names)? };
        let last = (set_state.position, set_state.time);
        let decided = batch::decide(
            last,
            now,
            changes.iter().copied(),
            |key| resource(&stored, key),
            |name| names.get(name).copied(),
        );
        write(set_state, tables, &stored, &decided)?;
        heads.extend(decided.heads);
    }
    versions::settle(set_state, tables)?;
    let mut heads = heads.into_iter();
    let results = batches.iter().zip(refused).map(|(batch, refused)| {
        if let Some(key) = refused {
            return Err(damaged_row(key));
        }
        let head = heads.by_ref().take(batch.len()).last().unwrap_or(before);
        let recorded = head.0 - before.0;
        before = head;
        Ok(Appended { head, recorded, unchanged: batch.len() as u64 - recorded })
    });
    Ok(results.collect())
}

/// Adds resources to the base of a new set.
pub(crate) fn import<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    resources: &[Imported],
) -> Result<(), T::Error> {
    for resources in resources.chunks(T::PART) {
        let all: Vec<&str> = resources.iter().map(|imported| imported.key.as_str()).collect();
        let stored = stored_rows(set_state, tables, &all)?;
        let decided =
            batch::decide_import(set_state.created, resources, |key| resource(&stored, key));
        write(set_state, tables, &stored, &decided)?;
    }
    versions::settle(set_state, tables)
}

/// The stored rows of keys.
fn stored_rows<'k, T: Tables>(
    set_state: &SetState,
    tables: &mut T,
    keys: &[&'k str],
) -> Result<StoredRows<'k>, T::Error> {
    if set_state.versions.keep {
        tables.announce(keys);
    }
    // Keys that may have a row, in order, each once.
    let mut keys: Vec<&str> =
        keys.iter().copied().filter(|key| !set_state.shards.is_beyond(key)).collect();
    keys.sort_unstable();
    keys.dedup();
    tables.rows(&keys)
}

fn resource<'s>(stored: &'s StoredRows<'_>, key: &str) -> Option<&'s Resource> {
    stored.get(key).map(|row| &*row.resource)
}

/// The first key with a damaged row that cannot be replaced, because the next change of this key
/// copies the row's properties.
fn undecidable<'c, T: Tables>(
    tables: &mut T,
    changes: &'c [Change],
) -> Result<Option<&'c str>, T::Error> {
    let keeps_state =
        |change: &Change| matches!(change.action, Action::Deprecate { state: None, .. });
    let mut keys: Vec<&str> = changes
        .iter()
        .filter(|change| keeps_state(change))
        .map(|change| change.key.as_str())
        .collect();
    if keys.is_empty() {
        return Ok(None);
    }
    keys.sort_unstable();
    keys.dedup();
    let stored = tables.rows(&keys)?;
    let is_first =
        |key: &str| changes.iter().find(|change| change.key == key).is_some_and(keeps_state);
    Ok(keys
        .into_iter()
        .find(|key| stored.get(key).is_some_and(|row| row.is_damaged) && is_first(key)))
}

/// Writes the decided changes, with pages, shards, versions and rows.
fn write<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    stored: &StoredRows<'_>,
    decided: &Decided<'_>,
) -> Result<(), T::Error> {
    let encoded: Vec<Option<Encoded<'_>>> = decided.steps.iter().map(encode).collect();
    record(set_state, tables, decided, &encoded)?;
    // Versions follow the log: each step may refer to a change that is recorded now.
    let due = follow(set_state, tables, stored, decided, &encoded)?;
    write_rows(tables, decided, &encoded)?;
    if !decided.names.is_empty() {
        tables.remember(&decided.names)?;
    }
    split(set_state, tables, due)
}

fn encode<'b>(step: &Step<'b>) -> Option<Encoded<'b>> {
    match step {
        Step::Record(entry) => entry.new.map(|held| Encoded::new(held, entry.deprecated)),
        Step::Move(moved) => Some(Encoded::new(moved.new, None)),
    }
}

/// Adds the changes to the log, and closes the pages that they fill.
fn record<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    decided: &Decided<'_>,
    encoded: &[Option<Encoded<'_>>],
) -> Result<(), T::Error> {
    let (mut changes, mut closed) = (Vec::with_capacity(decided.recorded as usize), Vec::new());
    for (step, encoded) in decided.steps.iter().zip(encoded) {
        let Step::Record(entry) = *step else { continue };
        let Entry { position, time, kind, row, old, replaced_by, summary, .. } = entry;
        if position == Position(0) {
            continue; // the base has no changes
        }
        closed.extend(set_state.close_before(time));
        let removed = old.filter(|_| encoded.is_none());
        changes.push(LogRow {
            position,
            time,
            kind,
            key: decided.rows[row].key,
            new: encoded.as_ref(),
            removed: removed.and_then(|old| descriptions::write_removed(old.state)),
            note: descriptions::write_note(summary, replaced_by, former_types(&entry)),
        });
        closed.extend(set_state.recorded(position, time));
    }
    if !changes.is_empty() {
        tables.record(&changes)?;
    }
    if closed.is_empty() { Ok(()) } else { tables.close_pages(&closed, &set_state.page.page()) }
}

/// The types before a change, if the change altered the types of an existing resource.
fn former_types<'b>(entry: &Entry<'b>) -> Option<&'b [String]> {
    fn types(held: Held<'_>) -> &[String] {
        held.state.description.as_deref().map_or(&[], |description| &description.types)
    }
    let (old, new) = (types(entry.old?), types(entry.new?));
    (old != new).then_some(old)
}

/// Counts resources, and updates shards and versions for each step. Returns the shards that may
/// have become too large.
fn follow<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    stored: &StoredRows<'_>,
    decided: &Decided<'_>,
    encoded: &[Option<Encoded<'_>>],
) -> Result<Vec<ShardId>, T::Error> {
    let mut sizes: Vec<u64> =
        decided.rows.iter().map(|row| stored.get(row.key).map_or(0, |row| row.bytes)).collect();
    let mut due = Vec::new();
    let mut is_first = vec![true; decided.rows.len()];
    for (step, encoded) in decided.steps.iter().zip(encoded) {
        match (step, encoded) {
            (Step::Record(entry), encoded) => {
                let key = decided.rows[entry.row].key;
                let former = stored.get(key).filter(|row| !row.is_damaged);
                if let Some(former) = former
                    && std::mem::take(&mut is_first[entry.row])
                {
                    versions::record_former(set_state, tables, &former.resource)?;
                }
                let touch = LastChange { position: entry.position, time: entry.time };
                let (before, bytes) =
                    (sizes[entry.row], encoded.as_ref().map_or(0, |new| new.bytes(key)));
                sizes[entry.row] = bytes;
                let shard = match (entry.old, encoded) {
                    (None, _) => {
                        set_state.resources += 1;
                        set_state.shards.inserted(key, bytes, touch)
                    }
                    (Some(_), Some(_)) => set_state.shards.updated(key, before, bytes, touch),
                    (Some(_), None) => {
                        set_state.resources -= 1;
                        set_state.shards.deleted(key, before, touch);
                        None
                    }
                };
                due.extend(shard.filter(|shard| due.last() != Some(shard)));
                versions::let_go(set_state, entry.old.and_then(|old| old.content));
                versions::hold(set_state, encoded.as_ref());
                versions::record(set_state, tables, key, touch, encoded.as_ref())?;
            }
            (Step::Move(moved), Some(encoded)) => {
                versions::let_go(set_state, moved.from);
                versions::hold(set_state, Some(encoded));
                versions::found_content(
                    set_state,
                    tables,
                    decided.rows[moved.row].key,
                    moved.position,
                    encoded,
                )?;
            }
            (Step::Move(_), None) => {}
        }
    }
    Ok(due)
}

/// Writes the rows in the order of their keys, and the positions at which resources left the set.
fn write_rows<T: Tables>(
    tables: &mut T,
    decided: &Decided<'_>,
    encoded: &[Option<Encoded<'_>>],
) -> Result<(), T::Error> {
    let new = |now: Now<'_>| now.step.and_then(|step| encoded.get(step)).and_then(Option::as_ref);
    let (mut rows, mut left, mut returned) =
        (Vec::with_capacity(decided.rows.len()), Vec::new(), Vec::new());
    for row in &decided.rows {
        let Row { key, .. } = *row;
        let write = match row.write() {
            Write::Insert(now) => {
                // Resources of a base cannot have left the set before.
                if now.position > Position(0) {
                    returned.push(key);
                }
                new(now).map(|new| RowWrite::Insert(new, now))
            }
            Write::Update(now) => new(now).map(|new| RowWrite::Update(new, now)),
            Write::Refresh(now) => Some(RowWrite::Refresh(now)),
            Write::Delete => Some(RowWrite::Delete),
            Write::Nothing => None,
        };
        rows.extend(write.map(|write| (key, write)));
        left.extend(row.tombstone().map(|position| (key, position)));
    }
    rows.sort_unstable_by_key(|(key, _)| *key);
    if !rows.is_empty() {
        tables.write(&rows)?;
    }
    if left.is_empty() && returned.is_empty() {
        Ok(())
    } else {
        tables.write_tombstones(&left, &returned)
    }
}

/// Splits shards until every shard has at most the allowed number of bytes.
fn split<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    mut due: Vec<ShardId>,
) -> Result<(), T::Error> {
    while let Some(id) = due.pop() {
        let Some(place) = set_state.shards.full(id) else { continue };
        let end = set_state.shards.end_of(place).map(str::to_owned);
        let Some(cut) = tables.middle(&set_state.shards.list()[place], end.as_deref())? else {
            continue;
        };
        let retired = set_state.shards.cut(place, cut);
        tables.retire(&retired, end.as_deref())?;
        due.extend(set_state.shards.list()[place..=place + 1].iter().map(|half| half.id));
    }
    Ok(())
}
