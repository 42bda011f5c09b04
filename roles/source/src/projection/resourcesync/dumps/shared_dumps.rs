//! Dumps that several nodes share: one item for each dump.

use super::dump_folder::{DumpFolder, current};
use super::record::Dump;
use super::{Cancel, DumpError};
use crate::made::shared::{
    Attempt, Finished, Item, NOW, SharedError, SharedFile, SharedGroup, SharedSet, WHEN_OLD,
};
use crate::publish::files::{FileContent, FileError};
use abreast_webtypes::Timestamp;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The groups of the dumps of a set.
pub(super) struct SharedDumps {
    pub(super) resources: Arc<SharedGroup>,
    pub(super) changes: Arc<SharedGroup>,
    /// Packages of the changes since a point.
    pub(super) since: Arc<SharedGroup>,
    /// Dumps of ResourceSync 0.1.
    pub(super) derived: Arc<SharedGroup>,
}

impl SharedDumps {
    /// Opens the groups, with local copies below `root`.
    pub(super) fn open(set: &SharedSet, root: &Path) -> io::Result<Self> {
        let open = |kind: &str| set.open(&format!("dumps/{kind}"), root.join(kind));
        Ok(Self {
            resources: open("resources")?,
            changes: open("changes")?,
            since: open("since")?,
            derived: open("derived")?,
        })
    }

    /// Whether this node makes the scheduled dumps.
    pub(super) fn is_mine(&self) -> bool {
        self.resources.is_mine()
    }

    /// Requests dumps from the node that has the turn.
    pub(super) fn request(&self, wanted: bool, at_once: bool) {
        if wanted || at_once {
            self.resources.want(if at_once { NOW } else { WHEN_OLD });
        }
    }

    /// Sets the function that notes a request of another node; `true` is a request for all dumps at
    /// once.
    pub(super) fn on_request(&self, note: impl Fn(bool) + Send + Sync + 'static) {
        self.resources.on_request(move |wanted| note(wanted >= NOW));
    }

    /// Group of a package, by the prefix of its file name.
    pub(super) fn group(&self, name: &str) -> &Arc<SharedGroup> {
        match name.split_once('-') {
            Some(("changes", _)) => &self.changes,
            Some(("since", _)) => &self.since,
            _ => &self.resources,
        }
    }

    /// Opens the file with this name. `find` returns the file if the record lists it.
    pub(super) fn open_file(
        &self,
        name: &str,
        find: impl Fn() -> Option<SharedFile>,
    ) -> Result<Option<FileContent>, FileError> {
        let group = self.group(name);
        // Another node may have published the file a moment ago.
        let found = match find() {
            None if group.read_again()? => find(),
            found => found,
        };
        Ok(found.map(|file| FileContent::shared(group, &file)))
    }

    /// Removes packages on demand that are older than `age`, and derived files whose package is not
    /// listed.
    pub(super) fn retire(
        &self,
        now: Timestamp,
        age: Duration,
        has_package: impl Fn(&str) -> bool,
    ) -> Result<(), SharedError> {
        let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
        withdraw(&self.since, |item| now.as_micros().saturating_sub(item.made) > age)?;
        // The name is `STEM.v0.1-1.zip`.
        withdraw(&self.derived, |item| {
            item.name.split_once(".v0.1-").is_none_or(|(stem, _)| !has_package(stem))
        })
    }
}

/// Removes items. The store is asked only if the known record has such an item.
fn withdraw(group: &SharedGroup, is_old: impl Fn(&Item) -> bool) -> Result<(), SharedError> {
    if group.known().1.items.iter().any(&is_old) { group.withdraw(is_old) } else { Ok(()) }
}

/// Description of a dump that is complete.
pub(super) fn finished<'a>(
    dump_folder: &DumpFolder,
    dump: &Dump,
    follows: bool,
    surplus: &'a dyn Fn(&[Item]) -> usize,
) -> Finished<'a> {
    let of_package = |stem: &String| ["zip", "xml"].map(|end| format!("{stem}.{end}"));
    Finished {
        name: dump.name.clone(),
        text: String::from_utf8_lossy(&dump_folder.record_of(dump)).into_owned(),
        names: dump.packages.iter().flat_map(|package| of_package(&package.stem)).collect(),
        earlier: Vec::new(),
        follows,
        surplus,
    }
}

/// Makes and publishes a dump. Returns `None` if another node makes the dumps.
pub(super) fn made(
    dump_folder: &Mutex<DumpFolder>,
    shared: &SharedGroup,
    stamp: Option<u64>,
    cancel: Cancel<'_>,
    make: impl FnOnce(&Path) -> Result<Dump, DumpError>,
) -> Result<Option<Arc<Dump>>, DumpError> {
    let publish = || {
        let attempt = Attempt::begin(shared, stamp.unwrap_or_default())?;
        let dump = make(attempt.folder())?;
        let finished = finished(&current(dump_folder), &dump, true, &|_| 0);
        attempt.publish(finished, &|| cancel.is_wanted())?;
        Ok(Arc::new(dump))
    };
    match publish() {
        Err(DumpError::Shared(error)) if error.is_of_another() => {
            tracing::info!("no dump is made: {error}");
            Ok(None)
        }
        made => made.map(Some),
    }
}
