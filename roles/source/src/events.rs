//! Which paths had a change event? inotify on every folder of the tree, Linux only.
//!
//! Only events that can mean a change are asked for: reading a file, as every request does, wakes nobody.

use crate::links::owner_of;
use crate::names::is_published_name;
use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of events read at a time.
const BUFFER: usize = 64 * 1024;

/// What an event says about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Something was created there.
    Created,
    /// Its content was written, by somebody who may go on.
    Written,
    /// A writer closed it, it was moved here or away, or removed.
    Settled,
    /// Its attributes changed; a writer may go on.
    Attributes,
}

/// Watches on a folder and every folder beneath it.
pub(crate) struct Events {
    inotify: Inotify,
    root: PathBuf,
    paths: HashMap<WatchDescriptor, Vec<u8>>,
    watches: BTreeMap<Vec<u8>, WatchDescriptor>,
    buffer: Vec<u8>,
    lost: bool,
}

impl Events {
    /// Watches a tree.
    ///
    /// # Errors
    /// The system's limits on watches, most likely.
    pub(crate) fn start(root: &Path) -> std::io::Result<Self> {
        let mut events = Self {
            inotify: Inotify::init()?,
            root: root.to_owned(),
            paths: HashMap::new(),
            watches: BTreeMap::new(),
            buffer: vec![0; BUFFER],
            lost: false,
        };
        events.watch_tree(Vec::new())?;
        Ok(events)
    }

    /// Were events lost since this was last asked?
    pub(crate) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Watches the tree as it is now, after events were lost: folders made or moved meanwhile are known again. What
    /// changed before this call is for a scan to find.
    ///
    /// # Errors
    /// The system's limits on watches; what could be watched is.
    pub(crate) fn rewatch(&mut self) -> std::io::Result<()> {
        let before = std::mem::take(&mut self.paths);
        self.watches.clear();
        // A folder that is watched already keeps its watch.
        let result = self.watch_tree(Vec::new());
        for watch in before.into_keys().filter(|watch| !self.paths.contains_key(watch)) {
            let _ = self.inotify.watches().remove(watch);
        }
        result
    }

    /// Waits for events, at most `wait`, and tells every path that had one.
    pub(crate) fn read(&mut self, wait: Duration, mut tell: impl FnMut(Vec<u8>, Hint)) {
        let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let ready = poll(&mut [PollFd::from_borrowed_fd(self.inotify.as_fd(), PollFlags::IN)], Some(&timeout));
        if !matches!(ready, Ok(count) if count > 0) {
            return;
        }
        let mut new_folders = Vec::new();
        // The kernel's queue is bounded; one filled while it is read waits for the next call.
        for _ in 0..256 {
            let events: Vec<_> = match self.inotify.read_events(&mut self.buffer) {
                Ok(events) => {
                    events.map(|event| (event.wd.clone(), event.mask, event.name.map(OsStr::to_owned))).collect()
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.lost = true;
                    break;
                }
            };
            for (watch, mask, name) in events {
                self.note(&watch, mask, name.as_deref(), &mut new_folders, &mut tell);
            }
        }
        for folder in new_folders {
            if let Err(error) = self.watch_tree(folder) {
                tracing::warn!(folder = %self.root.display(), "cannot watch a new folder: {error}");
                self.lost = true;
            }
        }
    }

    fn note(
        &mut self,
        watch: &WatchDescriptor,
        mask: EventMask,
        name: Option<&OsStr>,
        new_folders: &mut Vec<Vec<u8>>,
        tell: &mut impl FnMut(Vec<u8>, Hint),
    ) {
        if mask.contains(EventMask::Q_OVERFLOW) {
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
        // A sidecar says something of a file that may be published.
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
            // A folder's own attributes are of no interest.
            if mask.intersects(EventMask::CREATE | EventMask::MOVED_TO | EventMask::MOVED_FROM | EventMask::DELETE) {
                tell(path, Hint::Settled);
            }
            return;
        }
        let hint = if mask.contains(EventMask::MODIFY) {
            Hint::Written
        } else if mask.contains(EventMask::CREATE) {
            Hint::Created
        } else if mask.contains(EventMask::ATTRIB) {
            Hint::Attributes
        } else {
            Hint::Settled
        };
        tell(path, hint);
    }

    /// Watches a folder and all beneath it. What appears in between is found by the scan that follows an event.
    fn watch_tree(&mut self, top: Vec<u8>) -> std::io::Result<()> {
        let mask = WatchMask::CREATE
            | WatchMask::MODIFY
            | WatchMask::CLOSE_WRITE
            | WatchMask::ATTRIB
            | WatchMask::MOVED_FROM
            | WatchMask::MOVED_TO
            | WatchMask::DELETE
            | WatchMask::ONLYDIR
            | WatchMask::DONT_FOLLOW
            // A new folder may be met twice. Replacing a watch, the kernel clears its mask before it sets it again, and
            // loses the events of that moment: a file that was closed just then would look as if it were still written.
            | WatchMask::MASK_ADD;
        let mut folders = vec![top];
        while let Some(folder) = folders.pop() {
            let absolute = self.root.join(OsStr::from_bytes(&folder));
            match self.inotify.watches().add(&absolute, mask) {
                Ok(watch) => {
                    self.paths.insert(watch.clone(), folder.clone());
                    self.watches.insert(folder.clone(), watch);
                }
                // Gone again, or a link now: no folder of ours.
                Err(error) if folder.is_empty() || error.kind() == std::io::ErrorKind::StorageFull => {
                    return Err(error);
                }
                Err(_) => continue,
            }
            let Ok(entries) = std::fs::read_dir(&absolute) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                if is_published_name(name.as_bytes()) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(join(&folder, name.as_bytes()));
                }
            }
        }
        Ok(())
    }

    /// A folder was moved away: its watches speak of paths that are no more.
    fn forget_tree(&mut self, top: &[u8]) {
        let inside = |path: &[u8]| path == top || (path.starts_with(top) && path.get(top.len()) == Some(&b'/'));
        let moved: Vec<_> = self
            .watches
            .range(top.to_vec()..)
            .take_while(|(path, _)| path.starts_with(top))
            .filter(|(path, _)| inside(path))
            .map(|(path, watch)| (path.clone(), watch.clone()))
            .collect();
        for (path, watch) in moved {
            self.watches.remove(&path);
            self.paths.remove(&watch);
            let _ = self.inotify.watches().remove(watch);
        }
    }
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

    /// All paths told now.
    fn told(events: &mut Events) -> Vec<String> {
        let mut told = Vec::new();
        events.read(Duration::from_millis(100), |path, _| told.push(String::from_utf8_lossy(&path).into_owned()));
        told
    }

    #[test]
    fn an_overflow_is_told_and_folders_it_hid_are_watched_afterwards() {
        let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap_or_default();
        let limit = limit.trim().parse().unwrap_or(u64::MAX);
        if limit > 100_000 {
            println!("skipped: this system queues {limit} events, too many to overflow in a test");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("moved")).unwrap();
        let mut events = Events::start(root.path()).unwrap();
        // Two files in turn: the kernel joins equal events only when they follow each other.
        for number in 0..=limit / 2 {
            let file = root.path().join(if number % 2 == 0 { "a" } else { "b" });
            fs::write(&file, "x").unwrap();
        }
        fs::create_dir(root.path().join("late")).unwrap();
        fs::rename(root.path().join("moved"), root.path().join("here")).unwrap();
        let before = told(&mut events);
        assert!(!before.iter().any(|path| path == "late"), "hidden by the overflow");
        assert!(events.take_lost());
        assert!(!events.take_lost(), "told once");
        events.rewatch().unwrap();
        fs::write(root.path().join("late/x"), "1").unwrap();
        fs::write(root.path().join("here/y"), "1").unwrap();
        let mut after = told(&mut events);
        after.dedup();
        assert_eq!(after, ["late/x", "here/y"]);
    }
}
