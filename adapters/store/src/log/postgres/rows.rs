//! Reads rows of PostgreSQL into resources, changes and versions.

use crate::log::descriptions;
use crate::log::links;
use crate::log::set_rows::{empty_change, kind_of};
use crate::postgres::failure::Failure;
use abreast_core::{ChangeRecord, ContentId, Position, Resource, State, Version, Witnessed};
use abreast_webtypes::Timestamp;
use sha2::{Digest as _, Sha256};
use tokio_postgres::Row;

/// Columns of a resource, in the order [`read_resource`] expects.
macro_rules! resource_columns {
    () => {
        "modified, length, media_type, encoding, digests, links, content, key, witness, position, description, deprecated"
    };
}
/// Columns of a change, in the order [`read_change`] expects.
macro_rules! change_columns {
    () => {
        "modified, length, media_type, encoding, digests, links, content, key, kind, time, position, description, note"
    };
}
/// Columns of a version, in the order [`read_version`] expects.
macro_rules! version_columns {
    () => {
        "modified, length, media_type, encoding, digests, NULL::text, content, time, position"
    };
}
pub(crate) use {change_columns, resource_columns, version_columns};

/// Bytes of a key's hash in the tables.
const KEY_HASH_BYTES: usize = 16;

/// The hash by which rows of a key are found.
pub(crate) fn key_hash(key: &str) -> Vec<u8> {
    Sha256::digest(key.as_bytes())[..KEY_HASH_BYTES].to_vec()
}

/// Reads a resource.
pub(crate) fn read_resource(row: &Row) -> Result<Resource, Failure> {
    let mut state = read_state(row)?;
    state.description = json(row, 10, descriptions::read)?;
    Ok(Resource {
        key: row.try_get(7)?,
        state,
        witness: row.try_get(8)?,
        position: position(row, 9)?,
        deprecated: json(row, 11, descriptions::read_replacements)?,
    })
}

/// Reads key, fingerprint and content.
pub(crate) fn read_witnessed(row: &Row) -> Result<Witnessed, Failure> {
    Ok(Witnessed { key: row.try_get(0)?, witness: row.try_get(1)?, content: content(row, 2)? })
}

/// Reads a change.
pub(crate) fn read_change(row: &Row) -> Result<ChangeRecord, Failure> {
    let mut change = empty_change();
    change.key = row.try_get(7)?;
    let number = row.try_get(8)?;
    let unknown = || Failure::Damaged(format!("a change of the unknown kind {number}"));
    change.kind = kind_of(number).ok_or_else(unknown)?;
    change.time = time(row, 9)?;
    change.position = position(row, 10)?;
    let description = json(row, 11, descriptions::read)?;
    let note = json(row, 12, descriptions::read_note)?.unwrap_or_default();
    (change.summary, change.replaced_by, change.former_types) =
        (note.summary, note.replaced_by, note.former_types);
    if change.kind.keeps_resource() {
        change.state = Some(State { description, ..read_state(row)? });
    } else {
        change.removed = description;
    }
    Ok(change)
}

/// Reads a version; an imported version gets the creation time of its set.
pub(crate) fn read_version(row: &Row, created: Timestamp) -> Result<Version, Failure> {
    let position = position(row, 8)?;
    let has_state = row.try_get::<_, Option<i64>>(0)?.is_some();
    Ok(Version {
        time: if position == Position(0) { created } else { time(row, 7)? },
        position,
        state: has_state.then(|| read_state(row)).transpose()?,
    })
}

fn read_state(row: &Row) -> Result<State, Failure> {
    let mut state = State {
        modified: time(row, 0)?,
        length: row.try_get::<_, Option<i64>>(1)?.map(|length| length as u64),
        media_type: row.try_get(2)?,
        encoding: row.try_get(3)?,
        content: content(row, 6)?,
        ..State::default()
    };
    state.digests.set_from_bytes(row.try_get::<_, &[u8]>(4)?);
    if let Some(stored) = row.try_get::<_, Option<&str>>(5)? {
        links::read(stored, &mut state.links).map_err(|cause| not_json(5, &cause))?;
    }
    Ok(state)
}

/// Address of the stored bytes, if they are stored.
pub(crate) fn content(row: &Row, column: usize) -> Result<Option<ContentId>, Failure> {
    let Some(bytes) = row.try_get::<_, Option<&[u8]>>(column)? else { return Ok(None) };
    let wrong = || Failure::Damaged(format!("an address of contents of {} bytes", bytes.len()));
    ContentId::from_slice(bytes).map(Some).ok_or_else(wrong)
}

/// An address of stored bytes, as a column.
pub(crate) fn bytes_of(content: Option<ContentId>) -> Option<Vec<u8>> {
    content.map(|id| id.as_bytes().to_vec())
}

pub(crate) fn position(row: &Row, column: usize) -> Result<Position, Failure> {
    Ok(Position(row.try_get::<_, i64>(column)? as u64))
}

pub(crate) fn time(row: &Row, column: usize) -> Result<Timestamp, Failure> {
    Ok(Timestamp::from_micros(row.try_get(column)?))
}

/// A column of JSON, if it is not NULL.
fn json<T>(
    row: &Row,
    column: usize,
    read: impl FnOnce(&str) -> Result<T, serde_json::Error>,
) -> Result<Option<T>, Failure> {
    let stored: Option<&str> = row.try_get(column)?;
    stored.map(read).transpose().map_err(|cause| not_json(column, &cause))
}

fn not_json(column: usize, cause: &serde_json::Error) -> Failure {
    Failure::Damaged(format!("column {column} of a row is not the expected JSON: {cause}"))
}
