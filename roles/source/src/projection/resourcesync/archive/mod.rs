//! Archives: the earlier lists of a set [rs-archives §1].
//!
//! Closed Change Lists and old dumps keep their addresses, and archives only list them. Resource
//! Lists change, so copies are taken at intervals and kept as files: a list of the set, or an index
//! and lists of parts of it. A part in which nothing changed between two copies is kept once.
//! Copies are made in the background; nothing waits for them.

mod check;
mod copies;
mod keeper;
mod record;
mod salvage;
mod snapshot;

use crate::projection::interval::Interval;
use crate::projection::resourcesync::archive::copies::read_document;
use crate::publish::PublishError;
use abreast_core::{Position, ShardId};
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

/// When Resource Lists are copied, and how many copies are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveRule {
    /// Time between two copies; none is taken when nothing changed.
    pub every: Duration,
    /// Copies kept; the oldest go first.
    pub keep: usize,
}

/// The copies of one set's Resource List.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    rule: ArchiveRule,
    record: Mutex<Record>,
    interval: Interval,
}

impl Archive {
    /// Opens the archive in a folder, made if it is missing. Files of a copy that was not completed
    /// are removed. A record that is damaged or lost is made again from the lists.
    ///
    /// # Errors
    /// When the folder or the record of copies in it cannot be read.
    pub fn open(folder: impl Into<PathBuf>, rule: ArchiveRule) -> Result<Self, ArchiveError> {
        let folder = folder.into();
        let failed = |error| ArchiveError::Io(folder.clone(), error);
        fs::create_dir_all(&folder).map_err(failed)?;
        let record = salvage::record(&folder).map_err(failed)?;
        let (record, interval) = (Mutex::new(record), Interval::default());
        let archive = Self { folder: folder.clone(), rule, record, interval };
        archive.sweep().map_err(failed)?;
        Ok(archive)
    }

    /// When it takes copies.
    pub const fn rule(&self) -> ArchiveRule {
        self.rule
    }

    /// The copies there are, oldest first.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.lock().snapshots.clone()
    }

    /// The numbers of the first and the last copy.
    pub fn span(&self) -> Option<(u64, u64)> {
        let record = self.lock();
        Some((record.snapshots.first()?.number, record.snapshots.last()?.number))
    }

    /// Whether a copy of a set whose log ends at `position` is due.
    pub fn is_due(&self, position: Position, now: Timestamp) -> bool {
        self.lock().snapshots.last().is_none_or(|last| {
            position != last.position && self.interval.is_over(self.rule.every, last.taken, now)
        })
    }

    /// Whether there is a copy with this number.
    pub(crate) fn has_list(&self, number: u64) -> bool {
        self.lock().snapshots.iter().any(|snapshot| snapshot.number == number)
    }

    /// The bytes of a copy: the list, or the index of its parts.
    pub(crate) fn list(&self, number: u64) -> Result<Vec<u8>, PublishError> {
        if self.has_list(number) {
            self.read(&record::list_name(number))
        } else {
            Err(PublishError::NotFound)
        }
    }

    /// A part of copies, while one of them has it.
    pub(crate) fn find_part(&self, shard: ShardId, version: Position, number: u64) -> Option<Part> {
        let wanted =
            |part: &&Part| part.shard == shard && part.version == version && part.number == number;
        self.lock().snapshots.iter().flat_map(|snapshot| &snapshot.parts).find(wanted).copied()
    }

    /// The bytes of a part of copies.
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
            // Dropped a moment ago.
            io::ErrorKind::NotFound => PublishError::NotFound,
            _ => PublishError::Cache(error),
        })
    }

    /// Adds a copy whose files are durable, drops the oldest beyond the rule, and then the files of
    /// none.
    fn add(&self, snapshot: Snapshot) -> io::Result<()> {
        {
            let mut record = self.lock();
            let mut changed = record.clone();
            changed.snapshots.push(snapshot);
            let surplus = changed.snapshots.len().saturating_sub(self.rule.keep.max(1));
            changed.snapshots.drain(..surplus);
            changed.write(&self.folder)?;
            *record = changed;
            self.interval.made();
        }
        self.sweep()
    }

    /// Removes files that belong to no copy.
    fn sweep(&self) -> io::Result<()> {
        let wanted: BTreeSet<String> = {
            let record = self.lock();
            let lists = record.snapshots.iter().map(|snapshot| record::list_name(snapshot.number));
            let parts =
                record.snapshots.iter().flat_map(|snapshot| &snapshot.parts).map(record::part_name);
            lists.chain(parts).collect()
        };
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            // Other files belong to other programs.
            if let Some(name) =
                name.to_str().filter(|name| record::is_own_name(name) && !wanted.contains(*name))
            {
                fs::remove_file(self.folder.join(name))?;
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
