//! Recovery of a damaged or lost record of copies from the lists.

use super::copies::{Snapshot, read_document};
use super::record::{self, Record};
use crate::projection::resourcesync::archived::read_archived;
use abreast_core::Position;
use abreast_webtypes::Timestamp;
use std::path::Path;
use std::time::UNIX_EPOCH;
use std::{fs, io};

/// Reads the record of a folder; recovers the record from the lists if it is damaged or lost.
pub(super) fn record(folder: &Path) -> io::Result<Record> {
    let why = match Record::read(folder) {
        Ok(record) if record.snapshots.is_empty() && !folder.join(record::NAME).exists() => None,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Some(error),
        read => return read,
    };
    let record = from_lists(folder)?;
    if why.is_some() || !record.snapshots.is_empty() {
        let why = why.map_or_else(|| "it is lost".to_owned(), |error| error.to_string());
        tracing::warn!(
            "the record of archived lists in `{}` is made again from {} lists: {why}",
            folder.display(),
            record.snapshots.len()
        );
        record.write(folder)?;
    }
    Ok(record)
}

/// Recovers a record from the complete lists in a folder.
pub(super) fn from_lists(folder: &Path) -> io::Result<Record> {
    let mut snapshots = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some(number) = entry.file_name().to_str().and_then(record::list_number) {
            snapshots.extend(snapshot(folder, number, &entry)?);
        }
    }
    snapshots.sort_by_key(|snapshot| snapshot.number);
    Ok(Record { snapshots })
}

/// Reads a list with all its parts; `None` if one is damaged. An I/O error does not mean damage.
fn snapshot(folder: &Path, number: u64, entry: &fs::DirEntry) -> io::Result<Option<Snapshot>> {
    let list = undamaged(read_document(&entry.path()))?;
    let Some(list) = list.and_then(|list| read_archived(&list)) else { return Ok(None) };
    for part in &list.parts {
        if undamaged(read_document(&folder.join(record::part_name(part))))?.is_none() {
            return Ok(None);
        }
    }
    let written = entry.metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Some(Snapshot {
        number,
        at: list.at,
        completed: list.completed,
        taken: Timestamp::from_micros(written.as_micros() as i64),
        // The position is unknown, so the next interval makes a copy even if the set has not
        // changed.
        position: Position(0),
        parts: list.parts,
    }))
}

/// Returns the bytes, or `None` if the file is damaged or missing.
fn undamaged(read: io::Result<Vec<u8>>) -> io::Result<Option<Vec<u8>>> {
    match read {
        Err(error) if is_damage(&error) => Ok(None),
        read => read.map(Some),
    }
}

/// Whether an error means that a file is damaged or missing, and not that reading failed
/// temporarily.
pub(super) fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof
    )
}
