//! Paths without reliable events: folders that cannot be watched, paths that cannot be read, files
//! with several names.
//!
//! They are examined again every second or so, longer apart when that takes long.

use crate::names::fingerprint::{Fingerprint, fingerprint_of, is_gone};
use crate::names::path_state::{PathState, inspect};
use crate::scan::events::{Blocked, Events};
use crate::scan::ingest::IngestReport;
use crate::scan::rest::Rest;
use abreast_folder::{Folder, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time between two rounds, at least.
const PAUSE: Duration = Duration::from_secs(1);
/// Time between two scans of everything, at least.
const SCAN_PAUSE: Duration = Duration::from_secs(2);
/// A round takes at most this part of the time: one of so many.
const SHARE: u32 = 20;
/// Paths kept; for more everything is scanned.
const MAX_PATHS: usize = 1_000;
/// Files with several names that are followed; changes of more are found by scans, unless they are
/// made under the name that is published.
const MAX_SHARED: usize = 10_000;

/// The paths that are examined at intervals.
#[derive(Debug)]
pub(crate) struct Unsure {
    /// Paths that could not be read.
    paths: BTreeSet<Vec<u8>>,
    /// They were too many.
    more: bool,
    /// A file was found to have several names: the others are found by a scan.
    linked: bool,
    /// Files with several names, as they were seen last.
    shared: BTreeMap<Vec<u8>, Fingerprint>,
    /// Nothing is watched at all, though it should be.
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

    /// A scan of everything begins, which finds them all again.
    pub(crate) fn forget(&mut self) {
        self.paths.clear();
        self.shared.clear();
        self.more = false;
        self.linked = false;
    }

    /// Notes what could not be read, and files with several names; `all` when everything was
    /// scanned.
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

    /// Whether a full scan is due.
    pub(crate) fn scan_is_due(&self, events: Option<&Events>, now: Instant) -> bool {
        let many = || events.is_some_and(|events| events.blocked() == Blocked::Many);
        now >= self.next_scan && (self.unwatched || self.more || self.linked || many())
    }

    /// A scan of everything took this long.
    pub(crate) fn scanned(&mut self, took: Duration) {
        self.next_scan = Instant::now() + SCAN_PAUSE.max(took * SHARE);
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// A round took this long.
    pub(crate) fn examined(&mut self, took: Duration) {
        self.next = Instant::now() + PAUSE.max(took * SHARE);
    }

    /// The paths that can be read now and may have changed. Those that could not be read before are
    /// forgotten.
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
        // All of the folder is scanned as a whole.
        self.more |= ready.remove(&b""[..]);
        ready.into_iter().collect()
    }

    /// The files with several names that changed, and were not touched for `settle`.
    pub(crate) fn changed(
        &mut self,
        folder: &Folder,
        rest: &Rest,
        settle: Duration,
    ) -> Vec<Vec<u8>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut changed = Vec::new();
        self.shared.retain(|path, witness| {
            // Moved, removed or replaced: that is an event.
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

/// Whether the file or folder at a path can be read now, if there is one.
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
