//! Snapshots that several nodes share: one item for each snapshot.

use super::snapshot_name::SnapshotName;
use super::snapshot_record::Snapshot;
use crate::made::shared::{Attempt, Finished, SharedError, SharedGroup, SharedSet, WHEN_OLD};
use crate::publish::files::FileContent;
use abreast_webtypes::Timestamp;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The group of the snapshots of a set.
pub(super) struct Shared(Arc<SharedGroup>);

/// Snapshots of the record that was read last.
pub(super) struct KnownSnapshots {
    pub(super) stamp: u64,
    /// Complete snapshots, the oldest first.
    pub(super) complete: Vec<Arc<Snapshot>>,
    /// Time when the newest snapshot was published.
    pub(super) published: Option<Timestamp>,
}

impl Shared {
    pub(super) fn open(set: &SharedSet, folder: PathBuf) -> io::Result<Self> {
        set.open("snapshots", folder).map(Self)
    }

    /// Sets the function that starts making a snapshot for another node.
    pub(super) fn on_request(&self, make: impl Fn() + Send + Sync + 'static) {
        self.0.on_request(move |_| make());
    }

    /// Requests a snapshot from the node that has the turn.
    pub(super) fn request(&self) {
        self.0.want(WHEN_OLD);
    }

    pub(super) fn is_mine(&self) -> bool {
        self.0.is_mine()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.0.now()
    }

    /// Reads the record now, and returns whether it has changed.
    pub(super) fn read_again(&self) -> Result<bool, SharedError> {
        self.0.read_again()
    }

    /// Snapshots of the record, unless the caller knows them.
    pub(super) fn changed(&self, stamp: Option<u64>) -> Option<KnownSnapshots> {
        let (now, record) = self.0.known();
        if stamp == Some(now) {
            return None;
        }
        let texts = record.items.iter().map(|item| serde_json::from_str(&item.text));
        let mut complete: Vec<Arc<Snapshot>> = texts.filter_map(Result::ok).map(Arc::new).collect();
        complete.sort_by_key(|snapshot| snapshot.name);
        let published = record.items.last().map(|item| Timestamp::from_micros(item.made));
        Some(KnownSnapshots { stamp: now, complete, published })
    }

    /// Opens a file of a snapshot; `None` if the record does not list the file.
    pub(super) fn file(&self, name: SnapshotName, file: &str) -> Option<FileContent> {
        let record = self.0.known().1;
        let found = record.item(&name.to_string()).and_then(|item| item.file(file));
        found.map(|file| FileContent::shared(&self.0, file))
    }

    pub(super) fn begin(&self, stamp: u64) -> Result<Attempt<'_>, SharedError> {
        Attempt::begin(&self.0, stamp)
    }

    /// Publishes a complete snapshot; the oldest are removed.
    pub(super) fn publish(
        attempt: Attempt<'_>,
        snapshot: &Snapshot,
        keep: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), SharedError> {
        let name = snapshot.name.to_string();
        let text = serde_json::to_string(snapshot).map_err(io::Error::from)?;
        let names = snapshot.extensions().iter().map(|end| format!("{name}.{end}")).collect();
        let finished = Finished {
            name,
            text,
            names,
            earlier: Vec::new(),
            follows: true,
            surplus: &|items| items.len().saturating_sub(keep.max(1)),
        };
        attempt.publish(finished, stop)
    }
}
