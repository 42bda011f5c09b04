//! Status of a watch, for readiness, metrics and the API.

use crate::scan::guard::Held;
use abreast_folder::Folder;
use abreast_webtypes::Timestamp;
use std::sync::Mutex;

/// Most problems whose text is stored; further problems are counted.
const MAX_TEXTS: usize = 10;

/// State of a watch, for readiness and status pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WatchState {
    /// The watch has not started.
    #[default]
    Starting,
    /// The watch reads the whole folder.
    Scanning,
    /// The watch waits for changes.
    Watching,
    /// The folder cannot be read, with the reason. Published resources remain, and no deletion is
    /// recorded.
    Vanished(String),
    /// The store failed or its disk is full, with the reason. No change is recorded until the store
    /// works again.
    Failed(String),
    /// Another node that shares the store watches the folder, or no node does.
    Elsewhere,
    /// The watch has ended, or was never started.
    Stopped,
}

/// Status that a watch shares with its readers.
#[derive(Debug, Default)]
pub struct WatchStatus(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: WatchState,
    last_scan: Option<Timestamp>,
    problems: u64,
    problem_texts: Vec<String>,
    folder: Option<Folder>,
    held: Option<Held>,
    /// Keys of some of the resources whose deletion is held.
    held_names: Vec<String>,
    /// In sets of entities: numbers of blank nodes that belong to several entities, and that do not
    /// belong to any entity.
    blank_nodes: Option<(u64, u64)>,
    confirmed: bool,
    /// Whether a scan that is still running uses the confirmation.
    confirming: bool,
    when_read: Option<Continuation>,
    /// A scan was requested, and has not begun.
    scan_wanted: bool,
    /// Nothing is read: the changes of the set come from another writer.
    is_unwatched: bool,
}

/// Function that is called when the first scan is complete.
struct Continuation(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Continuation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Continuation")
    }
}

impl WatchStatus {
    /// Creates the status of a set without a watch, whose changes come from another writer.
    pub fn stopped() -> Self {
        let inner = Inner { state: WatchState::Stopped, is_unwatched: true, ..Inner::default() };
        Self(Mutex::new(inner))
    }

    /// Returns the current state of the watch.
    pub fn state(&self) -> WatchState {
        self.lock().state.clone()
    }

    /// Returns the end of the last full scan; `None` before the first scan ends.
    pub fn last_scan(&self) -> Option<Timestamp> {
        self.lock().last_scan
    }

    /// Returns the number of files and folders that the last full scan could not read.
    pub fn problems(&self) -> u64 {
        self.lock().problems
    }

    /// Returns the texts of some of these problems, up to ten.
    pub fn problem_texts(&self) -> Vec<String> {
        self.lock().problem_texts.clone()
    }

    /// Returns the folder that was last read. If the folder is replaced, the watch opens the new
    /// folder.
    pub fn folder(&self) -> Option<Folder> {
        self.lock().folder.clone()
    }

    /// Returns two numbers for sets of entities: blank nodes that belong to several entities, each
    /// of which has a copy, and blank nodes that do not belong to any entity and are not published.
    pub fn blank_nodes(&self) -> Option<(u64, u64)> {
        self.lock().blank_nodes
    }

    pub(crate) fn set_blank_nodes(&self, shared: u64, unreached: u64) {
        self.lock().blank_nodes = Some((shared, unreached));
    }

    /// Returns the deletions that wait for a confirmation.
    pub fn held(&self) -> Option<Held> {
        self.lock().held
    }

    /// Confirms the held deletions. The next scan starts immediately and records all deletions,
    /// without the guard.
    pub fn confirm_deletions(&self) {
        self.lock().confirmed = true;
    }

    /// Whether the set has something to read: a folder, files or an endpoint.
    pub fn can_scan(&self) -> bool {
        !self.lock().is_unwatched
    }

    /// Requests that the folder, the files or the endpoint is read now, or again after the reading in
    /// progress. Several requests before the reading begins are one. Returns whether the set has
    /// something to read.
    pub fn request_scan(&self) -> bool {
        let mut inner = self.lock();
        inner.scan_wanted = !inner.is_unwatched;
        inner.scan_wanted
    }

    pub(crate) fn is_scan_wanted(&self) -> bool {
        self.lock().scan_wanted
    }

    pub(crate) fn take_scan_wanted(&self) -> bool {
        std::mem::take(&mut self.lock().scan_wanted)
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        self.lock().confirmed
    }

    /// Whether held deletions are confirmed and not yet recorded.
    pub fn is_confirming(&self) -> bool {
        let inner = self.lock();
        inner.held.is_some() && (inner.confirmed || inner.confirming)
    }

    pub(crate) fn take_confirmed(&self) -> bool {
        let mut inner = self.lock();
        inner.confirming = std::mem::take(&mut inner.confirmed);
        inner.confirming
    }

    /// Keys of the resources whose deletion is held, at most 20.
    pub fn held_names(&self) -> Vec<String> {
        self.lock().held_names.clone()
    }

    /// Sets the deletions that the last scan holds, with the keys of some of the resources.
    pub(crate) fn set_held(&self, held: Option<Held>, names: Vec<String>) {
        let mut inner = self.lock();
        inner.held = held;
        inner.held_names = names;
        inner.confirming = false;
    }

    /// Forgets held deletions, and requests for the watch: another node judges the deletions again.
    pub(crate) fn forget_judgements(&self) {
        let mut inner = self.lock();
        inner.held = None;
        inner.held_names.clear();
        (inner.confirmed, inner.confirming, inner.scan_wanted) = (false, false, false);
    }

    pub(crate) fn set_folder(&self, folder: &Folder) {
        self.lock().folder = Some(folder.clone());
    }

    /// Calls `then` after the first complete scan, in the thread of the watch; immediately if the
    /// first scan is already complete.
    pub fn when_read(&self, then: impl FnOnce() + Send + 'static) {
        let mut inner = self.lock();
        if inner.state == WatchState::Watching {
            drop(inner);
            then();
        } else {
            inner.when_read = Some(Continuation(Box::new(then)));
        }
    }

    /// Reports that nothing is watched, and why: the set could not be opened.
    pub fn fail(&self, reason: String) {
        self.set(WatchState::Failed(reason));
    }

    pub(crate) fn set(&self, state: WatchState) {
        let mut inner = self.lock();
        // A retry does not mean that the folder or the store works again.
        let failing = matches!(inner.state, WatchState::Vanished(_) | WatchState::Failed(_));
        if !(failing && state == WatchState::Scanning) {
            inner.state = state;
        }
        let is_read = inner.state == WatchState::Watching;
        let then = if is_read { inner.when_read.take() } else { None };
        drop(inner);
        if let Some(Continuation(then)) = then {
            then();
        }
    }

    pub(crate) fn scanned(&self, at: Timestamp, problems: u64, mut texts: Vec<String>) {
        texts.truncate(MAX_TEXTS);
        let mut inner = self.lock();
        inner.last_scan = Some(at);
        inner.problems = problems;
        inner.problem_texts = texts;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_first_reading_is_done_once() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let then = |name: &'static str| {
            let sender = sender.clone();
            move || sender.send(name).unwrap()
        };
        let status = WatchStatus::default();
        status.when_read(then("waiting"));
        status.set(WatchState::Scanning);
        assert!(receiver.try_recv().is_err());
        status.set(WatchState::Watching);
        status.set(WatchState::Watching);
        status.when_read(then("read"));
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["waiting", "read"]);
    }

    #[test]
    fn requests_before_a_scan_begins_are_one_scan() {
        let status = WatchStatus::default();
        assert!(!status.is_scan_wanted());
        assert!(status.request_scan() && status.request_scan());
        assert!(status.take_scan_wanted());
        assert!(!status.take_scan_wanted());
        let status = WatchStatus::stopped();
        assert!(!status.request_scan());
        assert!(!status.is_scan_wanted());
    }

    #[test]
    fn a_failure_lasts_until_the_watch_works_again() {
        let status = WatchStatus::default();
        for failure in [WatchState::Failed("full".into()), WatchState::Vanished("gone".into())] {
            status.set(failure.clone());
            status.set(WatchState::Scanning);
            assert_eq!(status.state(), failure, "a new attempt is not yet a success");
            status.set(WatchState::Watching);
            assert_eq!(status.state(), WatchState::Watching);
        }
    }
}
