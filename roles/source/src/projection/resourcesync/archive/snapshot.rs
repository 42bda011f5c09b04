//! Copying of a Resource List that may change meanwhile.
//!
//! The head is read first, then one shard after the other. Each shard includes every change up to
//! the head, and perhaps later changes, as `at` and `completed` of a list specify [rs-core §10.1].

use super::copies::{ArchiveError, Part, Snapshot};
use super::shared::{Shared, failed};
use super::{Archive, record};
use crate::made::Making;
use crate::made::shared::Attempt;
use crate::projection::resourcesync::archived::{archived_index, archived_list};
use crate::publish::{PublishError, PublishedSet};
use abreast_core::{ChangeLog, Position, Shard};
use flate2::{Compression, write::GzEncoder};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often a part that changes while it is copied is copied again.
const ATTEMPTS: usize = 3;

/// Copies a set's Resource List if a copy is due. Returns whether a copy was made.
///
/// # Errors
/// See [`ArchiveError`]. A new copy was not added, and the next call retries.
pub fn take(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    stop: &AtomicBool,
) -> Result<bool, ArchiveError> {
    let Some(archive) = set.archive() else { return Ok(false) };
    let head = log.head(set.id)?;
    let now = log.now();
    let stamp = archive.lock().stamp;
    if head.importing || !archive.is_due(head.position, now) {
        return Ok(false);
    }
    let Some(shared) = &archive.shared else { return copy(log, set, archive, None, stop) };
    if !shared.is_mine() {
        return Ok(false);
    }
    let attempt = match shared.begin(stamp) {
        Err(error) if error.is_of_another() => return Ok(false),
        attempt => attempt.map_err(failed)?,
    };
    copy(log, set, archive, Some((shared, attempt)), stop)
}

/// Copies the list now; several nodes share the copy with an attempt.
fn copy(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    archive: &Archive,
    attempt: Option<(&Shared, Attempt<'_>)>,
    stop: &AtomicBool,
) -> Result<bool, ArchiveError> {
    let (head, now) = (log.head(set.id)?, log.now());
    let folder = attempt.as_ref().map_or(&*archive.folder, |(_, attempt)| attempt.folder());
    let folder = folder.to_owned();
    let before = archive.snapshots();
    let number = before.last().map_or(1, |last| last.number + 1);
    let shards = log.shards(set.id)?;
    let (mut making, mut parts) = (Making::begin(&folder), Vec::new());
    if shards.len() > 1 {
        for shard in &shards {
            if stop.load(Ordering::Relaxed) {
                return Err(ArchiveError::Stopped);
            }
            parts.push(keep_part(log, set, &folder, &mut making, shard, number, &before)?);
        }
    }
    let mut snapshot = Snapshot {
        number,
        at: head.time,
        completed: None,
        taken: now,
        position: head.position,
        parts,
    };
    let list = if let [only] = shards.as_slice() {
        let shard = current(log, set, only)?;
        snapshot.at = shard.time;
        archived_list(log, set, &shard)?
    } else {
        let after = log.head(set.id)?;
        snapshot.completed = (after.position != head.position).then_some(after.time);
        archived_index(set, &snapshot)
    };
    keep(&folder, &mut making, &record::list_name(number), &list)?;
    match attempt {
        None => archive
            .add(snapshot, making)
            .map_err(|error| ArchiveError::Io(archive.folder.join(record::NAME), error))?,
        Some((shared, attempt)) => {
            let stop = || stop.load(Ordering::Relaxed);
            match shared.add(attempt, making, snapshot, archive.rule.keep, &stop) {
                Err(error) if error.is_of_another() => return Ok(false),
                added => added.map_err(failed)?,
            }
        }
    }
    tracing::info!(set = %set.slug, number, "archived the Resource List");
    Ok(true)
}

fn current(log: &dyn ChangeLog, set: &PublishedSet, shard: &Shard) -> Result<Shard, ArchiveError> {
    Ok(log.shard(set.id, shard.id)?.ok_or(PublishError::NotFound)?)
}

/// Stores one part, unless an earlier copy has the same part.
fn keep_part(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    folder: &Path,
    making: &mut Making,
    shard: &Shard,
    number: u64,
    before: &[Snapshot],
) -> Result<Part, ArchiveError> {
    let mut shard = current(log, set, shard)?;
    let last = before.last().map_or(&[][..], |last| &last.parts);
    if let Some(part) =
        last.iter().find(|part| part.shard == shard.id && part.version == shard.version)
    {
        return Ok(*part);
    }
    let mut attempt = 0;
    loop {
        attempt += 1;
        let bytes = archived_list(log, set, &shard)?;
        let after = current(log, set, &shard)?;
        let stable = after.version == shard.version;
        if stable || attempt == ATTEMPTS {
            // A part that changed during the copying is never used in a later copy.
            let version = if stable { shard.version } else { Position(0) };
            let part = Part { shard: shard.id, version, number, time: shard.time };
            keep(folder, making, &record::part_name(&part), &bytes)?;
            return Ok(part);
        }
        shard = after;
    }
}

fn keep(folder: &Path, making: &mut Making, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
    let mut write = || {
        let file = making.file(name, bytes.len() as u64)?;
        let mut encoder = GzEncoder::new(file, Compression::default());
        encoder.write_all(bytes)?;
        making.complete(name, encoder.finish()?)
    };
    write().map_err(|error| ArchiveError::Io(folder.join(name), error))
}
