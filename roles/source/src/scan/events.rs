//! Change events of a tree: inotify on every folder of it, Linux only.
//!
//! Only events that can mean a change are requested: reading a file, as every request does, causes
//! none. A watch belongs to a folder, not to its path: the known path is the one where the folder
//! was found last. Folders in which the rules of the set leave out everything are not watched: the
//! number of watches is limited. Folders that cannot be watched are noted; the watch reads them at
//! intervals.

use crate::links::owner_of;
use crate::names::keys::is_published_name;
use abreast_folder::{Folder, Kind};
use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of events read at a time.
const BUFFER: usize = 64 * 1024;

/// Folders that cannot be watched and are noted one by one.
const MAX_BLOCKED: usize = 1_000;

/// The meaning of an event for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// A file was created there.
    Created,
    /// Its content was written; the writer may continue.
    Written,
    /// A writer closed it, or it was moved here.
    Finished,
    /// It was moved away or removed.
    Gone,
    /// It is a folder that was made or moved here.
    Folder,
    /// It was a folder, and was moved away or removed.
    FolderGone,
    /// Its attributes changed; a writer may continue.
    Attributes,
}

/// Watches on a folder and every selected folder beneath it.
pub(crate) struct Events {
    inotify: Inotify,
    root: PathBuf,
    /// Selects the folders that may hold files of the set.
    folder: Folder,
    paths: HashMap<WatchDescriptor, Vec<u8>>,
    watches: BTreeMap<Vec<u8>, WatchDescriptor>,
    buffer: Vec<u8>,
    lost: bool,
    /// Folders that could not be watched or listed.
    blocked: BTreeSet<Vec<u8>>,
    /// There are more of them.
    blocked_more: bool,
    /// It was reported that there are no more watches.
    reported: bool,
}

/// Folders whose changes are not noticed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// These, and what is beneath them.
    Folders(Vec<Vec<u8>>),
    /// Too many to note.
    Many,
}

impl Events {
    /// Watches the tree of a folder that is at this path, as far as possible: see
    /// [`Events::blocked`].
    ///
    /// # Errors
    /// The topmost folder cannot be watched; the system's limits, most likely.
    pub(crate) fn start(root: &Path, folder: &Folder) -> std::io::Result<Self> {
        let mut events = Self {
            inotify: Inotify::init()?,
            root: root.to_owned(),
            folder: folder.clone(),
            paths: HashMap::new(),
            watches: BTreeMap::new(),
            buffer: vec![0; BUFFER],
            lost: false,
            blocked: BTreeSet::new(),
            blocked_more: false,
            reported: false,
        };
        events.inotify.watches().add(root, mask())?;
        events.watch_tree(Vec::new());
        Ok(events)
    }

    /// The folders that could not be watched or listed when they were last met.
    pub(crate) fn blocked(&self) -> Blocked {
        if self.blocked_more {
            Blocked::Many
        } else {
            Blocked::Folders(self.blocked.iter().cloned().collect())
        }
    }

    /// Tries again to watch a folder that could not be watched.
    pub(crate) fn retry(&mut self, folder: &[u8]) {
        self.blocked.remove(folder);
        self.watch_tree(folder.to_vec());
    }

    /// Whether events were lost since the last call.
    pub(crate) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Watches the tree as it is now, after events were lost: folders made or moved meanwhile are
    /// known again. A scan finds the changes before this call.
    pub(crate) fn rewatch(&mut self) {
        let before = std::mem::take(&mut self.paths);
        self.watches.clear();
        self.blocked.clear();
        self.blocked_more = false;
        // A folder that is watched already keeps its watch.
        self.watch_tree(Vec::new());
        for watch in before.into_keys().filter(|watch| !self.paths.contains_key(watch)) {
            let _ = self.inotify.watches().remove(watch);
        }
    }

    /// Waits for events, at most `wait`, and passes every path that had one.
    pub(crate) fn read(&mut self, wait: Duration, mut visit: impl FnMut(Vec<u8>, Hint)) {
        let timeout =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let ready = poll(
            &mut [PollFd::from_borrowed_fd(self.inotify.as_fd(), PollFlags::IN)],
            Some(&timeout),
        );
        if !matches!(ready, Ok(count) if count > 0) {
            return;
        }
        let mut new_folders = Vec::new();
        // The kernel's queue is bounded; one filled while it is read waits for the next call.
        for _ in 0..256 {
            let events: Vec<_> = match self.inotify.read_events(&mut self.buffer) {
                Ok(events) => events
                    .map(|event| (event.wd.clone(), event.mask, event.name.map(OsStr::to_owned)))
                    .collect(),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.lost = true;
                    break;
                }
            };
            for (watch, mask, name) in events {
                self.note(&watch, mask, name.as_deref(), &mut new_folders, &mut visit);
            }
        }
        for folder in new_folders {
            self.watch_tree(folder);
        }
    }

    fn note(
        &mut self,
        watch: &WatchDescriptor,
        mask: EventMask,
        name: Option<&OsStr>,
        new_folders: &mut Vec<Vec<u8>>,
        visit: &mut impl FnMut(Vec<u8>, Hint),
    ) {
        // Folders that a mounted file system hid are visible again, and are not watched.
        if mask.intersects(EventMask::Q_OVERFLOW | EventMask::UNMOUNT) {
            self.lost = true;
            return;
        }
        if mask.contains(EventMask::IGNORED) {
            if let Some(path) = self.paths.remove(watch)
                && self.watches.get(&path) == Some(watch)
            {
                self.watches.remove(&path);
            }
            return;
        }
        let (Some(folder), Some(name)) = (self.paths.get(watch), name) else { return };
        // A sidecar describes a file that may be published.
        if !is_published_name(name.as_bytes()) && owner_of(name.as_bytes()).is_none() {
            return;
        }
        let path = join(folder, name.as_bytes());
        if mask.contains(EventMask::ISDIR) {
            if mask.intersects(EventMask::MOVED_FROM) {
                self.forget_tree(&path);
            }
            if mask.intersects(EventMask::CREATE | EventMask::MOVED_TO) {
                new_folders.push(path.clone());
            }
            // A folder's own attributes are of no interest: one that could not be read is tried
            // again anyway.
            if mask.intersects(EventMask::CREATE | EventMask::MOVED_TO) {
                visit(path, Hint::Folder);
            } else if mask.intersects(EventMask::MOVED_FROM | EventMask::DELETE) {
                visit(path, Hint::FolderGone);
            }
            return;
        }
        let hint = if mask.contains(EventMask::MODIFY) {
            Hint::Written
        } else if mask.contains(EventMask::CREATE) {
            Hint::Created
        } else if mask.contains(EventMask::ATTRIB) {
            Hint::Attributes
        } else if mask.intersects(EventMask::MOVED_FROM | EventMask::DELETE) {
            Hint::Gone
        } else {
            Hint::Finished
        };
        visit(path, hint);
    }

    /// Watches a folder and all selected folders beneath it. The scan that follows an event finds
    /// files made meanwhile.
    fn watch_tree(&mut self, top: Vec<u8>) {
        let mut folders = vec![top];
        while let Some(folder) = folders.pop() {
            if !folder.is_empty() && !self.folder.rules_select(&folder, Kind::Folder) {
                self.blocked.remove(&folder);
                continue;
            }
            let absolute = self.root.join(OsStr::from_bytes(&folder));
            let watch = match self.inotify.watches().add(&absolute, mask()) {
                Ok(watch) => watch,
                Err(error) if is_gone(&error) => {
                    // It is no longer a folder of this tree.
                    self.blocked.remove(&folder);
                    continue;
                }
                Err(error) => {
                    self.block(folder, &error);
                    continue;
                }
            };
            let outer = folders.len();
            let listed = list(&absolute, &folder, &self.folder, &mut folders);
            // Those around it were examined before.
            if matches!(listed, Ok(Listed::Marked)) && self.is_hidden(&folder) {
                folders.truncate(outer);
                self.blocked.remove(&folder);
                if !self.paths.contains_key(&watch) {
                    let _ = self.inotify.watches().remove(watch);
                }
                continue;
            }
            self.bind(&folder, &watch);
            if let Err(error) = listed
                && !is_gone(&error)
            {
                self.block(folder, &error);
            }
        }
    }

    fn is_hidden(&self, folder: &[u8]) -> bool {
        let opened = self.folder.dir(folder.split(|byte| *byte == b'/'));
        !folder.is_empty() && opened.is_ok_and(|dir| self.folder.hides(&dir, folder, true))
    }

    /// Notes the path of a watched folder. It may have had another path before, and another folder
    /// may have had this one.
    fn bind(&mut self, path: &[u8], watch: &WatchDescriptor) {
        if let Some(before) = self.paths.insert(watch.clone(), path.to_vec())
            && before != path
            && self.watches.get(&before) == Some(watch)
        {
            self.watches.remove(&before);
        }
        if let Some(other) = self.watches.insert(path.to_vec(), watch.clone())
            && other != *watch
            && self.paths.get(&other).is_some_and(|known| known == path)
        {
            self.paths.remove(&other);
            let _ = self.inotify.watches().remove(other);
        }
    }

    fn block(&mut self, folder: Vec<u8>, error: &std::io::Error) {
        if error.kind() == std::io::ErrorKind::StorageFull
            && !std::mem::replace(&mut self.reported, true)
        {
            tracing::warn!(
                folder = %self.root.display(),
                "cannot watch all folders: {error}; the others are scanned every few seconds instead \
                 (help: raise fs.inotify.max_user_watches)"
            );
        }
        if self.blocked.len() < MAX_BLOCKED {
            self.blocked.insert(folder);
        } else {
            self.blocked_more = true;
        }
    }

    /// A folder was moved away: the paths of its watches are no longer valid.
    fn forget_tree(&mut self, top: &[u8]) {
        let inside = |path: &[u8]| {
            path == top || (path.starts_with(top) && path.get(top.len()) == Some(&b'/'))
        };
        let moved: Vec<_> = self
            .watches
            .range(top.to_vec()..)
            .take_while(|(path, _)| path.starts_with(top))
            .filter(|(path, _)| inside(path))
            .map(|(path, watch)| (path.clone(), watch.clone()))
            .collect();
        for (path, watch) in moved {
            self.watches.remove(&path);
            // The folder may have been met at its new place already.
            if self.paths.get(&watch) == Some(&path) {
                self.paths.remove(&watch);
                let _ = self.inotify.watches().remove(watch);
            }
        }
        self.blocked.retain(|path| !inside(path));
    }
}

/// The events that can mean a change.
fn mask() -> WatchMask {
    WatchMask::CREATE
        | WatchMask::MODIFY
        | WatchMask::CLOSE_WRITE
        | WatchMask::ATTRIB
        | WatchMask::MOVED_FROM
        | WatchMask::MOVED_TO
        | WatchMask::DELETE
        | WatchMask::ONLYDIR
        | WatchMask::DONT_FOLLOW
        // A new folder may be met twice. Replacing a watch, the kernel clears its mask before it
        // sets it again, and loses the events of that moment: a file that was closed just then
        // would seem to be written still.
        | WatchMask::MASK_ADD
}

/// A listed folder: one that may be hidden, or any other.
enum Listed {
    Marked,
    Unmarked,
}

/// The folders in a folder.
fn list(
    absolute: &Path,
    path: &[u8],
    folder: &Folder,
    folders: &mut Vec<Vec<u8>>,
) -> std::io::Result<Listed> {
    let mut listed = Listed::Unmarked;
    for entry in std::fs::read_dir(absolute)? {
        let entry = entry?;
        let name = entry.file_name();
        if folder.is_mark(name.as_bytes()) {
            listed = Listed::Marked;
        }
        if is_published_name(name.as_bytes()) && entry.file_type()?.is_dir() {
            folders.push(join(path, name.as_bytes()));
        }
    }
    Ok(listed)
}

/// Whether the folder is gone, or a link is in its place.
fn is_gone(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + name.len() + 1);
    path.extend_from_slice(folder);
    if !folder.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// All paths that have an event now.
    fn paths(events: &mut Events) -> Vec<String> {
        let mut paths = Vec::new();
        events.read(Duration::from_millis(100), |path, _| {
            paths.push(String::from_utf8_lossy(&path).into_owned());
        });
        paths
    }

    #[test]
    fn folders_hidden_by_an_overflow_are_watched_afterwards() {
        let limit =
            fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap_or_default();
        let limit = limit.trim().parse().unwrap_or(u64::MAX);
        if limit > 100_000 {
            println!("skipped: this system queues {limit} events, too many to overflow in a test");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("moved")).unwrap();
        let mut events = Events::start(root.path(), &Folder::open(root.path()).unwrap()).unwrap();
        // Two files in turn: the kernel joins equal events only when they follow each other.
        for number in 0..=limit / 2 {
            let file = root.path().join(if number % 2 == 0 { "a" } else { "b" });
            fs::write(&file, "x").unwrap();
        }
        fs::create_dir(root.path().join("late")).unwrap();
        fs::rename(root.path().join("moved"), root.path().join("here")).unwrap();
        let before = paths(&mut events);
        assert!(!before.iter().any(|path| path == "late"), "hidden by the overflow");
        assert!(events.take_lost());
        assert!(!events.take_lost(), "reported once");
        events.rewatch();
        fs::write(root.path().join("late/x"), "1").unwrap();
        fs::write(root.path().join("here/y"), "1").unwrap();
        let mut after = paths(&mut events);
        after.dedup();
        assert_eq!(after, ["late/x", "here/y"]);
    }
}
