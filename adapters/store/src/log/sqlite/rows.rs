//! Reads rows into resources and changes, reusing their buffers.

use crate::log::descriptions;
use crate::log::links;
use crate::log::set_rows::kind_of;
use crate::log::sqlite::row_sum::{self, RowKind};
use abreast_core::{ChangeRecord, ContentId, Position, Resource, State, Version, Witnessed};
use abreast_webtypes::Timestamp;
use rusqlite::Row;
use rusqlite::types::{FromSqlError, ValueRef};

/// Columns of a resource, in the order [`read_resource`] expects.
macro_rules! resource_columns {
    () => {
        "modified, length, media_type, encoding, digests, links, content, key, witness, position, sum, description, deprecated"
    };
}
/// Columns of a change, in the order [`read_change`] expects.
macro_rules! change_columns {
    () => {
        "modified, length, media_type, encoding, digests, links, content, key, kind, time, position, sum, description, note"
    };
}
/// Columns of a version, in the order [`read_version`] expects.
macro_rules! version_columns {
    () => {
        "modified, length, media_type, encoding, digests, NULL, content, time, position, key, sum"
    };
}
pub(crate) use {change_columns, resource_columns, version_columns};

/// Reads a resource into `to`.
pub(crate) fn read_resource(row: &Row<'_>, to: &mut Resource) -> rusqlite::Result<()> {
    row_sum::check(row, RowKind::Resource, 7, &[], 10, &[11, 12])?;
    read_state(row, &mut to.state)?;
    to.state.description = json(row, 11, descriptions::read)?;
    to.deprecated = json(row, 12, descriptions::read_replacements)?;
    set_text(&mut to.key, text(row, 7)?);
    set_bytes(&mut to.witness, row, 8)?;
    to.position = Position(row.get::<_, i64>(9)? as u64);
    Ok(())
}

/// Reads key, fingerprint and content into `to`: no checksum covers the last two.
pub(crate) fn read_witnessed(row: &Row<'_>, to: &mut Witnessed) -> rusqlite::Result<()> {
    set_text(&mut to.key, text(row, 0)?);
    set_bytes(&mut to.witness, row, 1)?;
    to.content = content(row, 2)?;
    Ok(())
}

/// Reads a change into `to`.
pub(crate) fn read_change(row: &Row<'_>, to: &mut ChangeRecord) -> rusqlite::Result<()> {
    row_sum::check(row, RowKind::Change, 7, &[8, 9, 10], 11, &[12, 13])?;
    set_text(&mut to.key, text(row, 7)?);
    let number = row.get(8)?;
    to.kind = kind_of(number).ok_or(rusqlite::Error::IntegralValueOutOfRange(8, number))?;
    to.time = Timestamp::from_micros(row.get(9)?);
    to.position = Position(row.get::<_, i64>(10)? as u64);
    let description = json(row, 12, descriptions::read)?;
    let note = json(row, 13, descriptions::read_note)?.unwrap_or_default();
    (to.summary, to.replaced_by, to.former_types) =
        (note.summary, note.replaced_by, note.former_types);
    if to.kind.keeps_resource() {
        let state = to.state.get_or_insert_default();
        read_state(row, state)?;
        (state.description, to.removed) = (description, None);
    } else {
        (to.state, to.removed) = (None, description);
    }
    Ok(())
}

/// Reads a version; an imported version gets the creation time of its set.
pub(crate) fn read_version(row: &Row<'_>, created: Timestamp) -> rusqlite::Result<Version> {
    row_sum::check(row, RowKind::Version, 9, &[7, 8], 10, &[])?;
    let position = Position(row.get::<_, i64>(8)? as u64);
    let mut version = Version {
        time: if position == Position(0) { created } else { Timestamp::from_micros(row.get(7)?) },
        position,
        state: None,
    };
    if row.get_ref(0)? != ValueRef::Null {
        read_state(row, version.state.get_or_insert_default())?;
    }
    Ok(version)
}

fn read_state(row: &Row<'_>, to: &mut State) -> rusqlite::Result<()> {
    to.modified = Timestamp::from_micros(row.get(0)?);
    to.length = row.get::<_, Option<i64>>(1)?.map(|length| length as u64);
    set_option(&mut to.media_type, row.get_ref(2)?, 2)?;
    set_option(&mut to.encoding, row.get_ref(3)?, 3)?;
    to.digests.set_from_bytes(row.get_ref(4)?.as_blob().map_err(|error| wrong(4, error))?);
    to.links.clear();
    if let Some(links) = row.get_ref(5)?.as_str_or_null().map_err(|error| wrong(5, error))? {
        links::read(links, &mut to.links).map_err(|cause| not_json(5, cause))?;
    }
    to.content = content(row, 6)?;
    Ok(())
}

/// A column of JSON, if it is not NULL.
fn json<T>(
    row: &Row<'_>,
    column: usize,
    read: impl FnOnce(&str) -> Result<T, serde_json::Error>,
) -> rusqlite::Result<Option<T>> {
    let stored = row.get_ref(column)?.as_str_or_null().map_err(|error| wrong(column, error))?;
    stored.map(read).transpose().map_err(|cause| not_json(column, cause))
}

fn not_json(column: usize, cause: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(cause))
}

/// Address of the stored bytes, if they are stored.
pub(crate) fn content(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<ContentId>> {
    let Some(bytes) =
        row.get_ref(column)?.as_blob_or_null().map_err(|error| wrong(column, error))?
    else {
        return Ok(None);
    };
    let id =
        ContentId::from_slice(bytes).ok_or_else(|| wrong(column, FromSqlError::InvalidType))?;
    Ok(Some(id))
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<&'r str> {
    row.get_ref(column)?.as_str().map_err(|error| wrong(column, error))
}

fn set_text(to: &mut String, from: &str) {
    to.clear();
    to.push_str(from);
}

fn set_bytes(to: &mut Vec<u8>, row: &Row<'_>, column: usize) -> rusqlite::Result<()> {
    to.clear();
    to.extend_from_slice(row.get_ref(column)?.as_blob().map_err(|error| wrong(column, error))?);
    Ok(())
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
