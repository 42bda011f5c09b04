//! The record of copies, made again from the lists when it is damaged or lost.

use super::copies::{Snapshot, read_document};
use super::record::{self, Record};
use crate::projection::resourcesync::archived::read_archived;
use abreast_core::Position;
use abreast_webtypes::Timestamp;
use std::path::Path;
use std::time::UNIX_EPOCH;
use std::{fs, io};

/// The record of a folder; if it cannot be read, as the lists show it.
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

/// What the complete lists in a folder show of themselves.
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

/// A list with all its parts; `None` if it is damaged. An error of the system is none of the list.
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
        // It is not known: the next copy is taken at the next interval, whether something changed or not.
        position: Position(0),
        parts: list.parts,
    }))
}

/// What was read, unless it is damaged or missing.
fn undamaged(read: io::Result<Vec<u8>>) -> io::Result<Option<Vec<u8>>> {
    match read {
        Err(error) if is_damage(&error) => Ok(None),
        read => read.map(Some),
    }
}

/// Whether an error shows that a file is damaged or missing, and not that it cannot be read at the moment.
pub(super) fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof
    )
}
