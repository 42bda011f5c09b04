//! Archives: earlier lists of a set [rs-archives §1].
//!
//! Closed Change Lists and old dumps retain their URLs, so archives only list them. Resource Lists
//! change, so they are copied to files at intervals: as a list of the set, or as an index with
//! lists of its parts. A part without changes between two copies is stored once. Copies are made in
//! the background, and requests do not wait for them.

mod check;
mod copies;
mod keeper;
mod record;
mod salvage;
mod snapshot;

use crate::made::{Attempts, Making, sweep};
use crate::projection::resourcesync::archive::copies::read_document;
use crate::publish::PublishError;
use abreast_core::{Position, ShardId};
use abreast_folder::sealed;
use abreast_webtypes::Timestamp;
pub use check::{check_archives, repair_archives};
pub use copies::{ArchiveError, Part, Snapshot};
pub use keeper::Keeper;
use record::Record;
pub use snapshot::take;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval of copies of Resource Lists, and the number of stored copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveRule {
    /// Time between two copies; an unchanged set is not copied.
    pub every: Duration,
    /// Number of stored copies; the oldest are removed first.
    pub keep: usize,
}

/// Archived copies of one set's Resource List.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    rule: ArchiveRule,
    record: Mutex<Record>,
    attempts: Attempts,
}

impl Archive {
    /// Opens the archive in a folder, which is created if it is missing. Files of incomplete copies
    /// are removed. A damaged or lost record is recreated from the lists.
    ///
    /// # Errors
    /// The folder or the record of copies cannot be read.
    pub fn open(folder: impl Into<PathBuf>, rule: ArchiveRule) -> Result<Self, ArchiveError> {
        let folder = folder.into();
        let failed = |error| ArchiveError::Io(folder.clone(), error);
        fs::create_dir_all(&folder).map_err(failed)?;
        let record = salvage::record(&folder).map_err(failed)?;
        let what = format!("archive the Resource List in `{}`", folder.display());
        let (record, attempts) = (Mutex::new(record), Attempts::new(what));
        let archive = Self { folder: folder.clone(), rule, record, attempts };
        archive.sweep().map_err(failed)?;
        Ok(archive)
    }

    /// Interval and number of the archive's copies.
    pub const fn rule(&self) -> ArchiveRule {
        self.rule
    }

    /// Stored copies of the list, oldest first.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.lock().snapshots.clone()
    }

    /// Numbers of the first and the last copy.
    pub fn span(&self) -> Option<(u64, u64)> {
        let record = self.lock();
        Some((record.snapshots.first()?.number, record.snapshots.last()?.number))
    }

    /// Whether a copy of a set whose log ends at `position` is due.
    pub fn is_due(&self, position: Position, now: Timestamp) -> bool {
        self.lock().snapshots.last().is_none_or(|last| {
            position != last.position && self.attempts.is_over(self.rule.every, last.taken, now)
        })
    }

    /// Whether a copy with this number is stored.
    pub(crate) fn has_list(&self, number: u64) -> bool {
        self.lock().snapshots.iter().any(|snapshot| snapshot.number == number)
    }

    /// Bytes of a copy: the list, or the index of its parts.
    pub(crate) fn list(&self, number: u64) -> Result<Vec<u8>, PublishError> {
        if self.has_list(number) {
            self.read(&record::list_name(number))
        } else {
            Err(PublishError::NotFound)
        }
    }

    /// Part of a copy, if a stored copy has the part.
    pub(crate) fn find_part(&self, shard: ShardId, version: Position, number: u64) -> Option<Part> {
        let wanted =
            |part: &&Part| part.shard == shard && part.version == version && part.number == number;
        self.lock().snapshots.iter().flat_map(|snapshot| &snapshot.parts).find(wanted).copied()
    }

    /// Bytes of a part of a copy.
    pub(crate) fn part(
        &self,
        shard: ShardId,
        version: Position,
        number: u64,
    ) -> Result<Vec<u8>, PublishError> {
        let part = self.find_part(shard, version, number).ok_or(PublishError::NotFound)?;
        self.read(&record::part_name(&part))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, PublishError> {
        read_document(&self.folder.join(name)).map_err(|error| match error.kind() {
            // The file was removed a moment ago.
            io::ErrorKind::NotFound => PublishError::NotFound,
            _ => PublishError::Cache(error),
        })
    }

    /// Adds a copy whose files are complete, and removes the oldest copies above the limit.
    fn add(&self, snapshot: Snapshot, mut making: Making) -> io::Result<()> {
        let mut changed = self.lock().clone();
        changed.snapshots.push(snapshot);
        let surplus = changed.snapshots.len().saturating_sub(self.rule.keep.max(1));
        changed.snapshots.drain(..surplus);
        making.write(record::NAME, &sealed(changed.to_text().into_bytes()))?;
        making.publish(record::NAME)?;
        *self.lock() = changed;
        if let Err(error) = self.sweep() {
            let folder = self.folder.display();
            tracing::warn!("cannot remove archived lists that are dropped in `{folder}`: {error}");
        }
        Ok(())
    }

    /// Removes files that do not belong to a copy.
    fn sweep(&self) -> io::Result<()> {
        let wanted: BTreeSet<String> = {
            let record = self.lock();
            let lists = record.snapshots.iter().map(|snapshot| record::list_name(snapshot.number));
            let parts =
                record.snapshots.iter().flat_map(|snapshot| &snapshot.parts).map(record::part_name);
            lists.chain(parts).chain([record::NAME.to_owned()]).collect()
        };
        sweep(&self.folder, record::is_own_name, |name| Ok(wanted.contains(name)))
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
