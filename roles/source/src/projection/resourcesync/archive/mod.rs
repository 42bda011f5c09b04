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
mod shared;
mod snapshot;

use crate::made::shared::SharedSet;
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
use shared::Shared;
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
    /// The copies of all nodes, if several nodes share them; the folder has local copies.
    shared: Option<Shared>,
    known: Mutex<Known>,
    attempts: Attempts,
}

/// The record of copies.
#[derive(Debug)]
struct Known {
    record: Record,
    /// Number of the shared record from which the copies were taken.
    stamp: Option<u64>,
}

impl Archive {
    /// Opens the archive in a folder, which is created if it is missing. Files of incomplete copies
    /// are removed. A damaged or lost record is recreated from the lists. With `shared`, one node makes
    /// a copy and all nodes serve it; the folder has local copies.
    ///
    /// # Errors
    /// The folder or the record of copies cannot be read.
    pub fn open(
        folder: impl Into<PathBuf>,
        rule: ArchiveRule,
        shared: Option<&SharedSet>,
    ) -> Result<Self, ArchiveError> {
        let folder = folder.into();
        let failed = |error| ArchiveError::Io(folder.clone(), error);
        fs::create_dir_all(&folder).map_err(failed)?;
        let shared = shared.map(|set| Shared::open(set, folder.clone())).transpose();
        let shared = shared.map_err(failed)?;
        let record = match shared {
            Some(_) => Record::default(),
            None => salvage::record(&folder).map_err(failed)?,
        };
        let what = format!("archive the Resource List in `{}`", folder.display());
        let (known, attempts) = (Mutex::new(Known { record, stamp: None }), Attempts::new(what));
        let archive = Self { folder: folder.clone(), rule, shared, known, attempts };
        if archive.shared.is_none() {
            archive.sweep().map_err(failed)?;
        }
        Ok(archive)
    }

    /// Interval and number of the archive's copies.
    pub const fn rule(&self) -> ArchiveRule {
        self.rule
    }

    /// Stored copies of the list, oldest first.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.lock().record.snapshots.clone()
    }

    /// Numbers of the first and the last copy.
    pub fn span(&self) -> Option<(u64, u64)> {
        let known = self.lock();
        let record = &known.record;
        Some((record.snapshots.first()?.number, record.snapshots.last()?.number))
    }

    /// Whether a copy of a set whose log ends at `position` is due.
    pub fn is_due(&self, position: Position, now: Timestamp) -> bool {
        self.lock().record.snapshots.last().is_none_or(|last| {
            position != last.position
                && match self.shared {
                    Some(_) => Attempts::is_over_of_nodes(self.rule.every, last.taken, now),
                    None => self.attempts.is_over(self.rule.every, last.taken, now),
                }
        })
    }

    /// Whether a copy with this number is stored.
    pub(crate) fn has_list(&self, number: u64) -> Result<bool, PublishError> {
        self.found_again(|record| {
            record.snapshots.iter().any(|snapshot| snapshot.number == number).then_some(())
        })
        .map(|found| found.is_some())
    }

    /// Finds a copy; reads the record of all nodes again if the copy is unknown.
    fn found_again<T>(
        &self,
        find: impl Fn(&Record) -> Option<T>,
    ) -> Result<Option<T>, PublishError> {
        let found = find(&self.lock().record);
        match (found, &self.shared) {
            (None, Some(shared)) if shared.read_again()? => Ok(find(&self.lock().record)),
            (found, _) => Ok(found),
        }
    }

    /// Bytes of a copy: the list, or the index of its parts.
    pub(crate) fn list(&self, number: u64) -> Result<Vec<u8>, PublishError> {
        if self.has_list(number)? {
            self.read(&record::list_name(number))
        } else {
            Err(PublishError::NotFound)
        }
    }

    /// Part of a copy, if a stored copy has the part.
    pub(crate) fn find_part(
        &self,
        shard: ShardId,
        version: Position,
        number: u64,
    ) -> Result<Option<Part>, PublishError> {
        let wanted =
            |part: &&Part| part.shard == shard && part.version == version && part.number == number;
        self.found_again(|record| {
            record.snapshots.iter().flat_map(|snapshot| &snapshot.parts).find(wanted).copied()
        })
    }

    /// Bytes of a part of a copy.
    pub(crate) fn part(
        &self,
        shard: ShardId,
        version: Position,
        number: u64,
    ) -> Result<Vec<u8>, PublishError> {
        let part = self.find_part(shard, version, number)?.ok_or(PublishError::NotFound)?;
        self.read(&record::part_name(&part))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, PublishError> {
        let held = self.shared.as_ref().map(|shared| shared.hold(name)).transpose()?;
        let path = held.as_ref().map_or_else(|| self.folder.join(name), |held| held.path().into());
        read_document(&path).map_err(|error| match error.kind() {
            // The file was removed a moment ago.
            io::ErrorKind::NotFound => PublishError::NotFound,
            _ => PublishError::Cache(error),
        })
    }

    /// Adds a copy whose files are complete, and removes the oldest copies above the limit.
    fn add(&self, snapshot: Snapshot, mut making: Making) -> io::Result<()> {
        let mut changed = self.lock().record.clone();
        changed.snapshots.push(snapshot);
        let surplus = changed.snapshots.len().saturating_sub(self.rule.keep.max(1));
        changed.snapshots.drain(..surplus);
        making.write(record::NAME, &sealed(changed.to_text().into_bytes()))?;
        making.publish(record::NAME)?;
        self.lock().record = changed;
        if let Err(error) = self.sweep() {
            let folder = self.folder.display();
            tracing::warn!("cannot remove archived lists that are dropped in `{folder}`: {error}");
        }
        Ok(())
    }

    /// Removes files that do not belong to a copy.
    fn sweep(&self) -> io::Result<()> {
        let wanted: BTreeSet<String> = {
            let record = &self.lock().record;
            let lists = record.snapshots.iter().map(|snapshot| record::list_name(snapshot.number));
            let parts =
                record.snapshots.iter().flat_map(|snapshot| &snapshot.parts).map(record::part_name);
            lists.chain(parts).chain([record::NAME.to_owned()]).collect()
        };
        sweep(&self.folder, record::is_own_name, |name| Ok(wanted.contains(name)))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = &self.shared
            && let Some((stamp, record)) = shared.changed(known.stamp)
        {
            *known = Known { record, stamp: Some(stamp) };
        }
        known
    }
}
