//! Change events of a folder tree, by inotify on each folder; Linux only.
//!
//! Only events that can indicate a change are requested. Reading a file, as in each request of a
//! client, does not cause an event. A watch is attached to a folder, not to its path, and the
//! stored path is where the folder was last found. The number of watches is limited, so folders in
//! which the filter excludes all files are not watched. Folders that cannot be watched are recorded
//! and read at intervals.

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

/// Bytes of the buffer for events.
const BUFFER: usize = 64 * 1024;

/// Most folders in memory that cannot be watched.
const MAX_BLOCKED: usize = 1_000;

/// Meaning of an event for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// A file was created at this path.
    Created,
    /// The content was changed, and the process may continue to write.
    Written,
    /// A process closed the file after writing, or moved a file here.
    Finished,
    /// The file was deleted or moved away.
    Gone,
    /// A folder was created or moved here.
    Folder,
    /// A folder was deleted or moved away.
    FolderGone,
    /// The attributes of the file changed, and a process may continue to write.
    Attributes,
}

/// Watches on a folder and on all selected folders below it.
pub(crate) struct Events {
    inotify: Inotify,
    root: PathBuf,
    /// Published folder, with the filter for subfolders.
    folder: Folder,
    paths: HashMap<WatchDescriptor, Vec<u8>>,
    watches: BTreeMap<Vec<u8>, WatchDescriptor>,
    buffer: Vec<u8>,
    lost: bool,
    /// Folders that could not be watched or listed.
    blocked: BTreeSet<Vec<u8>>,
    /// Whether the number of such folders exceeded the limit.
    blocked_more: bool,
    /// Whether the log already contains the message that the limit of watches is reached.
    reported: bool,
}

/// Folders without events, whose changes are not detected immediately.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// Folders that are not watched, including all of their subfolders.
    Folders(Vec<Vec<u8>>),
    /// Too many folders to list.
    Many,
}

impl Events {
    /// Watches the tree of a folder at this path. For folders that cannot be watched, see
    /// [`Events::blocked`].
    ///
    /// # Errors
    /// The topmost folder cannot be watched, usually because of a limit of the system.
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

    /// Returns the folders that could not be watched or listed in the last attempt.
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

    /// Watches the current tree after events were lost, including folders that were created or
    /// moved meanwhile. A scan must find the changes before this call.
    pub(crate) fn rewatch(&mut self) {
        let before = std::mem::take(&mut self.paths);
        self.watches.clear();
        self.blocked.clear();
        self.blocked_more = false;
        // The existing watch of a folder remains in use.
        self.watch_tree(Vec::new());
        for watch in before.into_keys().filter(|watch| !self.paths.contains_key(watch)) {
            let _ = self.inotify.watches().remove(watch);
        }
    }

    /// Waits up to `wait` for events, and passes the path of each event to `visit`.
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
        // The queue of the kernel is bounded. If it fills up during this loop, the rest is read by
        // the next call.
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
        // After an unmount, folders that the mounted file system covered are visible again, without
        // watches.
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
        // The name of a sidecar is hidden, but its file may be published.
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
            // Changed attributes of a folder are ignored: unreadable folders are retried at
            // intervals.
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

    /// Watches a folder and all selected folders below it. The scan that follows an event finds
    /// files that were created meanwhile.
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
                    // The path is not a folder of this tree any more.
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
            // The outer folders were examined before.
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

    /// Records the path of a watched folder, and removes the previous path of the folder and the
    /// previous folder at this path.
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

    /// Removes the paths of all watches below a folder that was moved away.
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
            // The folder may already be known at its new path.
            if self.paths.get(&watch) == Some(&path) {
                self.paths.remove(&watch);
                let _ = self.inotify.watches().remove(watch);
            }
        }
        self.blocked.retain(|path| !inside(path));
    }
}

/// Returns the events that can indicate a change.
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
        // A new folder may be found twice. When a watch is replaced, the kernel clears its mask
        // before it sets the new one, and loses events in between. If the close event of a file is
        // lost, the file seems to be still open.
        | WatchMask::MASK_ADD
}

/// Result of listing a folder, which distinguishes folders that may be private.
enum Listed {
    Marked,
    Unmarked,
}

/// Lists the subfolders of a folder.
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

/// Whether the folder was deleted or replaced by a symbolic link.
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

    /// Reads the paths of all current events.
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
        // Alternates two files, because the kernel merges an event only with an equal event
        // directly before it.
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
