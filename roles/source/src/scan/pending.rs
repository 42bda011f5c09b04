//! Paths with events, and the time when each path is due to be read.

use crate::scan::events::Hint;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

/// Most paths in the queue. With more, the whole folder is scanned.
pub(crate) const MAX_PENDING: usize = 50_000;
/// Most paths that are read in one pass.
const MAX_READY: usize = 5_000;
/// Longest delay of a path that changes continuously, if no process is known to be writing the
/// file.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// Longest time that a written file may remain open and unchanged before its current content is
/// read.
pub(crate) const UNCLOSED: Duration = Duration::from_secs(60);
/// Time after which it is checked whether a process has a written file open: a file that was
/// modified by path does not cause a close event.
const UNSURE: Duration = Duration::from_secs(1);
/// Time until the same check for a file that was created and not yet written.
const UNWRITTEN: Duration = Duration::from_secs(2);
/// Shortest time since the last change of a file that is read, because the event of a more recent
/// change may not have arrived.
pub(crate) const INSTANT: Duration = Duration::from_millis(10);
/// A finished file is not published immediately if it was already published within this time.
const REPEATED: Duration = Duration::from_secs(1);
/// Most immediately published files in memory.
const MAX_REPEATED: usize = 10_000;

/// State of a path with events.
#[derive(Clone, Copy, Debug)]
struct Path {
    first: Instant,
    last: Instant,
    writing: Writing,
    /// Whether it was already checked which process has the file open.
    is_asked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    /// No process is writing the file, according to events.
    No,
    /// The file was closed after writing, or moved here in complete form.
    Finished,
    /// The file was deleted or moved away.
    Gone,
    /// Created by a process that did not close the file.
    Created,
    /// Written by a process that did not close the file.
    Written,
}

impl Writing {
    const fn is_open(self) -> bool {
        matches!(self, Self::Created | Self::Written)
    }
}

/// Queue of the paths that have events.
#[derive(Debug)]
pub(crate) struct Pending {
    paths: BTreeMap<Vec<u8>, Path>,
    /// No path is due before this time. The time is not recomputed at each event, because the queue
    /// can be long and events are frequent.
    earliest: Option<Instant>,
    /// Times at which the first and the last of the queued paths were deleted.
    removed: Option<(Instant, Instant)>,
    /// No written path needs a check of its open files before this time.
    unsure: Option<Instant>,
    /// Time of the last event of the path that waited longest among the paths taken last.
    taken: Option<Instant>,
    /// Times at which files were published immediately.
    repeated: HashMap<Vec<u8>, Instant>,
    debounce: Duration,
    /// Whether finished files are due immediately, without the delay of other files.
    at_once: bool,
}

impl Pending {
    pub(crate) fn new(debounce: Duration, at_once: bool) -> Self {
        Self {
            paths: BTreeMap::new(),
            earliest: None,
            removed: None,
            unsure: None,
            taken: None,
            repeated: HashMap::new(),
            debounce,
            at_once,
        }
    }

    pub(crate) fn too_many(&self) -> bool {
        self.paths.len() > MAX_PENDING
    }

    /// Updates the queue after an event.
    pub(crate) fn note(&mut self, path: Vec<u8>, hint: Hint) {
        let now = Instant::now();
        if matches!(hint, Hint::Folder | Hint::FolderGone) {
            self.forget_beneath(&path);
        }
        let known = self.paths.get(&path);
        let first = known.map_or(now, |known| known.first);
        let writing = match hint {
            Hint::Written => Writing::Written,
            Hint::Created => Writing::Created,
            Hint::Finished | Hint::Folder => Writing::Finished,
            Hint::Gone | Hint::FolderGone => Writing::Gone,
            // The process that writes the file may still have the file open.
            Hint::Attributes => known.map_or(Writing::No, |known| known.writing),
        };
        if writing == Writing::Written {
            let due = now + UNSURE;
            self.unsure = Some(self.unsure.map_or(due, |unsure| unsure.min(due)));
        }
        if writing == Writing::Gone {
            self.removed = Some((self.removed.map_or(now, |(first, _)| first), now));
        }
        self.put(path, Path { first, last: now, writing, is_asked: false });
    }

    fn put(&mut self, name: Vec<u8>, path: Path) {
        let due = self.due(&name, &path);
        self.earliest = Some(self.earliest.map_or(due, |earliest| earliest.min(due)));
        self.paths.insert(name, path);
    }

    /// Removes the paths below a folder that was replaced. The new folder is read as a whole, and
    /// the earlier events may be about the previous folder.
    fn forget_beneath(&mut self, folder: &[u8]) {
        let (first, end) = ([folder, b"/"].concat(), [folder, b"0"].concat());
        while let Some((path, _)) = self.paths.range(first.clone()..end.clone()).next() {
            let path = path.clone();
            self.paths.remove(&path);
        }
    }

    /// Adds paths that had no event, to be read later.
    pub(crate) fn defer(&mut self, paths: Vec<Vec<u8>>) {
        let now = Instant::now();
        for path in paths {
            if !self.paths.contains_key(&path) {
                let path_state =
                    Path { first: now, last: now, writing: Writing::No, is_asked: false };
                self.put(path, path_state);
            }
        }
    }

    fn due(&self, name: &[u8], path: &Path) -> Instant {
        let rest = |first: Instant, last: Instant| {
            (last + self.debounce).min(first + MAX_DELAY.max(self.debounce))
        };
        let quiet = || rest(path.first, path.last);
        match path.writing {
            // All deleted paths are due together, so that the guard judges all deletions in one
            // decision.
            Writing::Gone => self.removed.map_or(path.last, |(first, last)| rest(first, last)),
            Writing::Finished if self.at_once => match self.repeated.get(name) {
                Some(at) if path.last < *at + REPEATED => quiet(),
                _ => path.last + INSTANT.min(self.debounce),
            },
            Writing::No | Writing::Finished => quiet(),
            Writing::Created => path.last + UNWRITTEN,
            Writing::Written => path.last + UNCLOSED,
        }
    }

    /// Returns the time before which no path is due.
    pub(crate) const fn next_due(&self) -> Option<Instant> {
        self.earliest
    }

    /// Removes and returns the paths that are due.
    pub(crate) fn take_ready(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return Vec::new();
        }
        let due = self.paths.iter().filter(|(name, path)| self.due(name, path) <= now);
        let mut ready: Vec<_> = due.map(|(name, path)| (name.clone(), path.writing)).collect();
        let mut room = MAX_READY;
        ready.retain(|(_, writing)| {
            let is_taken = room > 0 || *writing == Writing::Gone;
            room = room.saturating_sub(1);
            is_taken
        });
        if self.repeated.len() >= MAX_REPEATED {
            self.repeated.retain(|_, at| *at + REPEATED > now);
        }
        let mut names = Vec::with_capacity(ready.len());
        self.taken = None;
        for (name, writing) in ready {
            let last = self.paths.remove(&name).map(|path| path.last);
            self.taken = self.taken.into_iter().chain(last).min();
            if writing == Writing::Finished && self.at_once && self.repeated.len() < MAX_REPEATED {
                self.repeated.insert(name.clone(), now);
            }
            names.push(name);
        }
        self.forget_removed();
        self.earliest = self.paths.iter().map(|(name, path)| self.due(name, path)).min();
        names
    }

    /// Time of the last event of the path that waited longest among the last result of
    /// [`take_ready`](Self::take_ready).
    pub(crate) fn taken(&self) -> Option<Instant> {
        self.taken
    }

    /// Returns paths that were written and not closed, and have no recent events. A path is
    /// returned once until the next write.
    pub(crate) fn take_unsure(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if self.unsure.is_none_or(|unsure| unsure > now) {
            return Vec::new();
        }
        self.unsure = None;
        let mut unsure = Vec::new();
        for (name, path) in &mut self.paths {
            if path.writing != Writing::Written || path.is_asked {
                continue;
            }
            let due = path.last + UNSURE;
            if due <= now && unsure.len() < MAX_READY {
                path.is_asked = true;
                unsure.push(name.clone());
            } else {
                self.unsure = Some(self.unsure.map_or(due, |unsure| unsure.min(due)));
            }
        }
        unsure
    }

    /// Returns the paths of files that processes are writing.
    pub(crate) fn written(&self) -> HashSet<Vec<u8>> {
        self.paths
            .iter()
            .filter(|(_, path)| path.writing.is_open())
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Resets the times of deletions if no deleted path is queued.
    fn forget_removed(&mut self) {
        if self.removed.is_some() && self.paths.values().all(|path| path.writing != Writing::Gone) {
            self.removed = None;
        }
    }

    /// Whether the queue contains a deleted path.
    pub(crate) const fn has_removed(&self) -> bool {
        self.removed.is_some()
    }

    /// Whether the queue contains a path.
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.paths.contains_key(name)
    }

    /// Removes the paths that the next full scan will read. Paths of files that are still being
    /// written keep their state, so that the scan does not publish incomplete files. If there are
    /// too many such paths, they are removed too, because each scan would otherwise cause another
    /// scan.
    pub(crate) fn leave_to_scan(&mut self, now: Instant) {
        let mut paths = std::mem::take(&mut self.paths);
        paths.retain(|name, path| path.writing.is_open() && self.due(name, path) > now);
        if paths.len() <= MAX_PENDING {
            self.paths = paths;
        }
        self.forget_removed();
        self.earliest = self.paths.iter().map(|(name, path)| self.due(name, path)).min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBOUNCE: Duration = Duration::from_millis(200);

    fn noted(hints: &[Hint]) -> Pending {
        let mut pending = Pending::new(DEBOUNCE, true);
        for hint in hints {
            pending.note(b"a".to_vec(), *hint);
        }
        pending
    }

    /// Returns the time at which the first path is due, and checks that `next_due` is not later.
    fn first_due(pending: &Pending) -> Instant {
        let due = pending.paths.iter().map(|(name, path)| pending.due(name, path)).min().unwrap();
        assert!(pending.next_due().unwrap() <= due);
        due
    }

    fn writing(hints: &[Hint]) -> Writing {
        noted(hints).paths[&b"a"[..]].writing
    }

    #[test]
    fn changed_attributes_do_not_end_a_writing() {
        assert_eq!(writing(&[Hint::Written, Hint::Attributes]), Writing::Written);
        assert_eq!(writing(&[Hint::Written, Hint::Finished, Hint::Attributes]), Writing::Finished);
        assert_eq!(writing(&[Hint::Attributes]), Writing::No);
    }

    #[test]
    fn a_quiet_file_that_was_not_closed_is_asked_about_once() {
        let mut pending = noted(&[Hint::Written]);
        assert_eq!(pending.take_unsure(Instant::now()).len(), 0, "it was just written");
        let later = Instant::now() + UNSURE;
        assert_eq!(pending.take_unsure(later), [b"a".to_vec()]);
        assert_eq!(pending.take_unsure(later).len(), 0);
        pending.note(b"a".to_vec(), Hint::Written);
        assert_eq!(pending.take_unsure(Instant::now() + UNSURE).len(), 1);
        let mut closed = noted(&[Hint::Written, Hint::Finished]);
        assert_eq!(closed.take_unsure(later + UNSURE).len(), 0);
    }

    #[test]
    fn a_new_folder_forgets_pending_paths_beneath_its_name() {
        let mut pending = noted(&[]);
        for path in ["d", "d/e/f", "d.x", "d0"] {
            pending.note(path.into(), Hint::Written);
        }
        pending.note(b"d".to_vec(), Hint::Folder);
        let left: Vec<_> = pending
            .written()
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        assert_eq!(left, [b"d.x".to_vec(), b"d0".to_vec()]);
    }

    #[test]
    fn a_scan_of_everything_passes_over_what_is_being_written() {
        let now = Instant::now();
        let left = |hints: &[Hint], later: Duration| {
            let mut pending = noted(hints);
            pending.leave_to_scan(now + later);
            pending.written().len()
        };
        assert_eq!(left(&[Hint::Written], Duration::ZERO), 1);
        assert_eq!(left(&[Hint::Finished], Duration::ZERO), 0);
        assert_eq!(
            left(&[Hint::Written], UNCLOSED + Duration::from_secs(60)),
            0,
            "quiet for long enough"
        );
    }

    #[test]
    fn too_many_unclosed_files_do_not_make_scans_without_end() {
        let mut pending = Pending::new(DEBOUNCE, true);
        for number in 0..=MAX_PENDING {
            pending.note(number.to_string().into_bytes(), Hint::Created);
        }
        assert!(pending.too_many());
        pending.leave_to_scan(Instant::now());
        assert!(pending.paths.is_empty());
    }

    #[test]
    fn a_finished_file_is_due_at_once_and_others_when_quiet() {
        let removed = |pending: &Pending| first_due(pending) - pending.removed.unwrap().1;
        let mut gone = noted(&[Hint::Gone]);
        assert_eq!(removed(&gone), DEBOUNCE);
        std::thread::sleep(Duration::from_millis(5));
        gone.note(b"b".to_vec(), Hint::Gone);
        assert_eq!(removed(&gone), DEBOUNCE, "all removed paths are due together");
        assert_eq!(gone.take_ready(Instant::now() + DEBOUNCE).len(), 2);
        let wait = |pending: &Pending| first_due(pending) - pending.paths[&b"a"[..]].last;
        assert_eq!(wait(&noted(&[Hint::Created, Hint::Written, Hint::Finished])), INSTANT);
        assert_eq!(wait(&noted(&[Hint::Finished, Hint::Written])), UNCLOSED);
        let mut fixed = Pending::new(DEBOUNCE, false);
        fixed.note(b"a".to_vec(), Hint::Finished);
        assert_eq!(wait(&fixed), DEBOUNCE, "unless a fixed wait is configured");
    }

    #[test]
    fn a_file_finished_again_and_again_waits_until_it_is_quiet() {
        let mut pending = noted(&[Hint::Finished]);
        assert_eq!(pending.take_ready(Instant::now() + INSTANT), [b"a".to_vec()]);
        pending.note(b"a".to_vec(), Hint::Finished);
        assert!(pending.take_ready(Instant::now() + INSTANT).is_empty());
        assert_eq!(pending.take_ready(Instant::now() + DEBOUNCE).len(), 1);
    }

    #[test]
    fn what_is_awaited_is_found_again_when_it_is_over() {
        let mut pending = noted(&[Hint::Finished, Hint::Written]);
        let early = pending.next_due().unwrap();
        assert!(early < first_due(&pending), "it was finished, and is written again");
        assert!(pending.take_ready(early).is_empty());
        assert_eq!(pending.next_due().unwrap(), first_due(&pending));
        for number in 0..=MAX_READY {
            pending.note(number.to_string().into_bytes(), Hint::Finished);
        }
        let later = Instant::now() + DEBOUNCE;
        assert_eq!(pending.take_ready(later).len(), MAX_READY);
        assert!(pending.next_due().unwrap() <= later, "one is left");
        assert_eq!(pending.take_ready(later).len(), 1);
        pending.leave_to_scan(later);
        assert_eq!(
            pending.next_due(),
            pending.paths.values().next().map(|path| path.last + UNCLOSED)
        );
    }
}
