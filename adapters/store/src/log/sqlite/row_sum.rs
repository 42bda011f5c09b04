//! The checksum of a row of the change log.
//!
//! The checksum of a change covers its position and time too. The checksum of a resource does not
//! cover its position, which the log contains. Columns that change alone and whose damage has other
//! checks are not covered: the address of the stored bytes, and the fingerprint.

use crate::database::sum::{Sum, damaged};
use crate::log::set_rows::Encoded;
use rusqlite::Row;
use rusqlite::types::ValueRef;

/// The table of a row, which is part of its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    Resource,
    Change,
    Version,
}

/// The checksum of a row about to be written. `numbers` are columns in addition to the resource's
/// properties. `texts` are columns that older rows do not have: an absent text is not covered, so
/// that the checksums of older rows remain valid.
pub(crate) fn of_row(
    key: &str,
    numbers: &[i64],
    new: Option<&Encoded<'_>>,
    of: RowKind,
    texts: &[Option<&str>],
) -> i64 {
    let mut sum = Sum::default();
    let state = new.map(|new| new.state);
    sum.number(state.map(|state| state.modified.as_micros()));
    sum.number(state.and_then(|state| state.length).map(|length| length as i64));
    sum.bytes(state.and_then(|state| state.media_type.as_deref()).map(str::as_bytes));
    sum.bytes(state.and_then(|state| state.encoding.as_deref()).map(str::as_bytes));
    sum.bytes(new.map(|new| new.digests.as_slice()));
    sum.bytes(
        new.filter(|_| of != RowKind::Version)
            .and_then(|new| new.links.as_deref())
            .map(str::as_bytes),
    );
    sum.bytes(new.filter(|_| of != RowKind::Resource).and_then(Encoded::content));
    sum.bytes(Some(key.as_bytes()));
    for number in numbers {
        sum.number(Some(*number));
    }
    for (place, text) in texts.iter().enumerate() {
        if let Some(text) = text {
            sum.number(Some(place as i64));
            sum.bytes(Some(text.as_bytes()));
        }
    }
    sum.finish()
}

/// Compares a row with its checksum. The first columns are the resource's properties, from
/// `modified` to `content`; `key`, `numbers` and `texts` are the indexes of the other columns,
/// `sum` is that of the checksum.
pub(crate) fn check(
    row: &Row<'_>,
    of: RowKind,
    key: usize,
    numbers: &[usize],
    sum: usize,
    texts: &[usize],
) -> rusqlite::Result<()> {
    let ValueRef::Integer(stored) = row.get_ref(sum)? else { return Ok(()) };
    let mut own = Sum::default();
    for column in (0..7).chain([key]).chain(numbers.iter().copied()) {
        let value = if column == 6 && of == RowKind::Resource {
            ValueRef::Null
        } else {
            row.get_ref(column)?
        };
        if own.value(value).is_none() {
            return Err(damaged(column));
        }
    }
    for (place, column) in texts.iter().enumerate() {
        let value = row.get_ref(*column)?;
        if value != ValueRef::Null {
            own.number(Some(place as i64));
            own.value(value).ok_or_else(|| damaged(*column))?;
        }
    }
    if own.finish() == stored { Ok(()) } else { Err(damaged(sum)) }
}
