//! Paths without reliable events: folders that cannot be watched, paths that cannot be read, and
//! files with several hard links.
//!
//! The watch examines these paths about every second, or less often if the examination takes long.

use crate::names::fingerprint::{Fingerprint, fingerprint_of, is_gone};
use crate::names::path_state::{PathState, inspect};
use crate::scan::events::{Blocked, Events};
use crate::scan::ingest::IngestReport;
use crate::scan::rest::Rest;
use abreast_folder::{Folder, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Shortest pause between two examinations of these paths.
const PAUSE: Duration = Duration::from_secs(1);
/// Shortest pause between two full scans.
const SCAN_PAUSE: Duration = Duration::from_secs(2);
/// Inverse of the highest share of time that examinations may take.
const SHARE: u32 = 20;
/// Most unreadable paths in memory. With more, the whole folder is scanned.
const MAX_PATHS: usize = 1_000;
/// Most files with several hard links that are examined. Scans find changes of further files,
/// unless the change is made under the published name.
const MAX_SHARED: usize = 10_000;

/// Paths that are examined at intervals, because events are missing or unreliable.
#[derive(Debug)]
pub(crate) struct Unsure {
    /// Paths that could not be read in the last attempt.
    paths: BTreeSet<Vec<u8>>,
    /// Whether the number of unreadable paths exceeded the limit, so that a full scan is necessary.
    more: bool,
    /// Whether a file with several hard links was found. A full scan must find its other names.
    linked: bool,
    /// Files with several hard links, and the fingerprint of the last examination.
    shared: BTreeMap<Vec<u8>, Fingerprint>,
    /// Whether events are enabled in the options but could not be started.
    unwatched: bool,
    next: Instant,
    next_scan: Instant,
}

impl Unsure {
    pub(crate) fn new(unwatched: bool) -> Self {
        let now = Instant::now();
        Self {
            paths: BTreeSet::new(),
            more: false,
            linked: false,
            shared: BTreeMap::new(),
            unwatched,
            next: now + PAUSE,
            next_scan: now + SCAN_PAUSE,
        }
    }

    /// Removes all paths at the start of a full scan, which finds the paths again.
    pub(crate) fn forget(&mut self) {
        self.paths.clear();
        self.shared.clear();
        self.more = false;
        self.linked = false;
    }

    /// Adds unreadable paths and files with several hard links. `all` is true if the report is of a
    /// full scan.
    pub(crate) fn add(&mut self, report: &mut IngestReport, all: bool) {
        for path in std::mem::take(&mut report.unreadable) {
            if self.paths.len() < MAX_PATHS {
                self.paths.insert(path);
            } else {
                self.more = true;
            }
        }
        for (path, witness) in std::mem::take(&mut report.shared) {
            if self.shared.len() < MAX_SHARED {
                let new = self.shared.insert(path, witness).is_none();
                self.linked |= new && !all;
            }
        }
    }

    /// Whether a full scan is necessary because of these paths, and its pause is over.
    pub(crate) fn scan_is_due(&self, events: Option<&Events>, now: Instant) -> bool {
        let many = || events.is_some_and(|events| events.blocked() == Blocked::Many);
        now >= self.next_scan && (self.unwatched || self.more || self.linked || many())
    }

    /// Computes the next time for a full scan from the duration of the last one.
    pub(crate) fn scanned(&mut self, took: Duration) {
        self.next_scan = Instant::now() + SCAN_PAUSE.max(took * SHARE);
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Computes the next time for an examination from the duration of the last one.
    pub(crate) fn examined(&mut self, took: Duration) {
        self.next = Instant::now() + PAUSE.max(took * SHARE);
    }

    /// Returns the paths that may have changed and can be read now, and removes the returned paths
    /// that were unreadable before.
    pub(crate) fn take_readable(
        &mut self,
        folder: &Folder,
        events: Option<&mut Events>,
    ) -> Vec<Vec<u8>> {
        let mut ready: BTreeSet<Vec<u8>> =
            self.paths.iter().filter(|path| is_readable(folder, path)).cloned().collect();
        self.paths.retain(|path| !ready.contains(path));
        if let Some(events) = events
            && let Blocked::Folders(folders) = events.blocked()
        {
            for blocked in folders {
                events.retry(&blocked);
                if is_readable(folder, &blocked) {
                    ready.insert(blocked);
                }
            }
        }
        // If the published folder itself was unreadable, a full scan replaces the examination of
        // single paths.
        self.more |= ready.remove(&b""[..]);
        ready.into_iter().collect()
    }

    /// Returns files with several hard links that changed and then remained unchanged for `settle`.
    pub(crate) fn changed(
        &mut self,
        folder: &Folder,
        rest: &Rest,
        settle: Duration,
    ) -> Vec<Vec<u8>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut changed = Vec::new();
        self.shared.retain(|path, witness| {
            // The file was moved, deleted or replaced, and its folder has an event for that.
            let Some(stat) = stat_of(folder, path) else { return false };
            if fingerprint_of(&stat) == *witness {
                return true;
            }
            if rest.age_at(now, &stat) < settle {
                return true;
            }
            changed.push(path.clone());
            *witness = fingerprint_of(&stat);
            true
        });
        changed
    }
}

fn stat_of(folder: &Folder, path: &[u8]) -> Option<Stat> {
    let PathState::File(dir) = inspect(folder, path) else { return None };
    dir.stat(path.rsplit(|byte| *byte == b'/').next()?).ok()
}

/// Whether the file or folder at a path can be read now, or does not exist.
fn is_readable(folder: &Folder, path: &[u8]) -> bool {
    match inspect(folder, path) {
        PathState::Unreadable(_) => false,
        PathState::LeftOut | PathState::Nothing => true,
        PathState::Folder => {
            let dir = folder.dir(path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()));
            !matches!(dir.and_then(|dir| dir.entries()), Err(error) if !is_gone(error.kind()))
        }
        PathState::File(dir) => {
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            !matches!(dir.open_read(name), Err(error) if !is_gone(error.kind()))
        }
    }
}
