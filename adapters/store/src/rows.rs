//! How does a row become a resource or a change? Without allocating where buffers can be used again.

use crate::links;
use abreast_core::{ChangeRecord, Kind, Position, Resource, State};
use abreast_webtypes::Timestamp;
use rusqlite::Row;
use rusqlite::types::{FromSqlError, ValueRef};

/// Columns of a resource, in the order [`read_resource`] expects.
macro_rules! resource_columns {
    () => {
        "modified, length, media_type, encoding, digests, links, key, witness, position"
    };
}
/// Columns of a change, in the order [`read_change`] expects.
macro_rules! change_columns {
    () => {
        "modified, length, media_type, encoding, digests, links, key, kind, time, position"
    };
}
pub(crate) use {change_columns, resource_columns};

/// The number that stands for a kind of change.
pub(crate) const fn kind_number(kind: Kind) -> i64 {
    match kind {
        Kind::Create => 1,
        Kind::Add => 2,
        Kind::Update => 3,
        Kind::Deprecate => 4,
        Kind::Remove => 5,
        // Kinds that the model may gain must get a number here and in the schema's comment.
        _ => 6,
    }
}

const fn kind_of(number: i64) -> Option<Kind> {
    Some(match number {
        1 => Kind::Create,
        2 => Kind::Add,
        3 => Kind::Update,
        4 => Kind::Deprecate,
        5 => Kind::Remove,
        6 => Kind::Delete,
        _ => return None,
    })
}

/// Reads a resource into `to`.
pub(crate) fn read_resource(row: &Row<'_>, to: &mut Resource) -> rusqlite::Result<()> {
    read_state(row, &mut to.state)?;
    set_text(&mut to.key, text(row, 6)?);
    to.witness.clear();
    to.witness.extend_from_slice(row.get_ref(7)?.as_blob().map_err(|error| wrong(7, error))?);
    to.position = Position(row.get::<_, i64>(8)? as u64);
    Ok(())
}

/// Reads a change into `to`.
pub(crate) fn read_change(row: &Row<'_>, to: &mut ChangeRecord) -> rusqlite::Result<()> {
    set_text(&mut to.key, text(row, 6)?);
    let number = row.get(7)?;
    to.kind = kind_of(number).ok_or(rusqlite::Error::IntegralValueOutOfRange(7, number))?;
    to.time = Timestamp::from_micros(row.get(8)?);
    to.position = Position(row.get::<_, i64>(9)? as u64);
    if to.kind.keeps_resource() {
        read_state(row, to.state.get_or_insert_default())?;
    } else {
        to.state = None;
    }
    Ok(())
}

/// A change to read into.
pub(crate) fn empty_change() -> ChangeRecord {
    ChangeRecord {
        position: Position(0),
        time: Timestamp::default(),
        kind: Kind::Create,
        key: String::new(),
        state: None,
    }
}

fn read_state(row: &Row<'_>, to: &mut State) -> rusqlite::Result<()> {
    to.modified = Timestamp::from_micros(row.get(0)?);
    to.length = row.get::<_, Option<i64>>(1)?.map(|length| length as u64);
    set_option(&mut to.media_type, row.get_ref(2)?, 2)?;
    set_option(&mut to.encoding, row.get_ref(3)?, 3)?;
    to.digests.set_from_bytes(row.get_ref(4)?.as_blob().map_err(|error| wrong(4, error))?);
    to.links.clear();
    if let Some(links) = row.get_ref(5)?.as_str_or_null().map_err(|error| wrong(5, error))? {
        links::read(links, &mut to.links).map_err(|cause| {
            rusqlite::Error::FromSqlConversionFailure(5, rusqlite::types::Type::Text, Box::new(cause))
        })?;
    }
    Ok(())
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<&'r str> {
    row.get_ref(column)?.as_str().map_err(|error| wrong(column, error))
}

fn set_text(to: &mut String, from: &str) {
    to.clear();
    to.push_str(from);
}

fn set_option(to: &mut Option<String>, from: ValueRef<'_>, column: usize) -> rusqlite::Result<()> {
    match from.as_str_or_null().map_err(|error| wrong(column, error))? {
        Some(from) => set_text(to.get_or_insert_default(), from),
        None => *to = None,
    }
    Ok(())
}

fn wrong(column: usize, cause: FromSqlError) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Null, Box::new(cause))
}
