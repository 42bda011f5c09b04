//! Copies of lists that several nodes share: one item for each copy.

use super::copies::{ArchiveError, Snapshot};
use super::record::{self, Record};
use crate::made::Making;
use crate::made::shared::{Attempt, Finished, Held, SharedError, SharedGroup, SharedSet};
use crate::publish::PublishError;
use abreast_core::contents::ErrorKind;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The group of the archived lists of a set.
pub(super) struct Shared(Arc<SharedGroup>);

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn open(set: &SharedSet, folder: PathBuf) -> io::Result<Self> {
        set.open("archives", folder).map(Self)
    }

    pub(super) fn is_mine(&self) -> bool {
        self.0.is_mine()
    }

    /// Copies of the record that was read last, unless the caller knows them.
    pub(super) fn changed(&self, stamp: Option<u64>) -> Option<(u64, Record)> {
        let (now, shared) = self.0.known();
        if stamp == Some(now) {
            return None;
        }
        let texts = shared.items.iter().filter_map(|item| record::parse(&item.text).ok());
        Some((now, Record { snapshots: texts.flat_map(|record| record.snapshots).collect() }))
    }

    /// Reads the record now, and returns whether it has changed.
    pub(super) fn read_again(&self) -> Result<bool, PublishError> {
        self.0.read_again().map_err(refused)
    }

    /// Local copy of a list or part.
    pub(super) fn hold(&self, name: &str) -> Result<Held, PublishError> {
        let shared = self.0.known().1;
        let file = shared.items.iter().rev().find_map(|item| item.file(name));
        self.0.hold(file.ok_or(PublishError::NotFound)?).map_err(refused)
    }

    pub(super) fn begin(&self, stamp: Option<u64>) -> Result<Attempt<'_>, SharedError> {
        Attempt::begin(&self.0, stamp.unwrap_or_default())
    }

    /// Publishes a copy whose new files are complete; the oldest copies above `keep` are removed.
    pub(super) fn add(
        &self,
        attempt: Attempt<'_>,
        making: Making,
        snapshot: Snapshot,
        keep: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), SharedError> {
        let number = snapshot.number;
        let (new, old): (Vec<_>, Vec<_>) =
            snapshot.parts.iter().partition(|part| part.number == number);
        let mut names = vec![record::list_name(number)];
        names.extend(new.into_iter().map(record::part_name));
        let shared = self.0.known().1;
        let earlier =
            |name: String| shared.items.iter().rev().find_map(|item| item.file(&name)).cloned();
        let earlier = old.into_iter().map(record::part_name).map(earlier);
        let earlier = earlier.collect::<Option<_>>().ok_or(SharedError::Published)?;
        let finished = Finished {
            name: number.to_string(),
            text: Record { snapshots: vec![snapshot] }.to_text(),
            names,
            earlier,
            follows: true,
            surplus: &|items| items.len().saturating_sub(keep.max(1)),
        };
        making.retain();
        attempt.publish(finished, stop)
    }
}

fn refused(error: SharedError) -> PublishError {
    match (error.retry(), &error) {
        (Some(seconds), _) => PublishError::NotMade {
            reason: "the archived list cannot be read from the object store now".to_owned(),
            seconds,
        },
        (None, SharedError::Store(cause)) if cause.kind() == ErrorKind::NotFound => {
            PublishError::NotFound
        }
        _ => PublishError::Cache(io::Error::other(error)),
    }
}

/// The error of an attempt to share a copy.
pub(super) fn failed(error: SharedError) -> ArchiveError {
    match error {
        SharedError::Stopped => ArchiveError::Stopped,
        error => ArchiveError::Shared(Box::new(error)),
    }
}
