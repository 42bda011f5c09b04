//! The state of the watching of one folder, as readiness, metrics and the API report it.

use crate::scan::guard::Held;
use abreast_folder::Folder;
use abreast_webtypes::Timestamp;
use std::sync::Mutex;

/// Most problems that are kept as text.
const MAX_TEXTS: usize = 10;

/// The state of a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WatchState {
    /// Not begun.
    #[default]
    Starting,
    /// Reading the whole folder.
    Scanning,
    /// Waiting for changes.
    Watching,
    /// The folder cannot be read; what was published stays, nothing is deleted.
    Vanished(String),
    /// The store failed, or its disk is full: nothing is recorded until it works again.
    Failed(String),
    /// Ended.
    Stopped,
}

/// Shared by the watch and those that report on it.
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
    /// Of sets of entities: blank nodes of several entities, and of none.
    blank_nodes: Option<(u64, u64)>,
    confirmed: bool,
    /// The confirmation was taken by a scan that has not ended.
    confirming: bool,
    when_read: Option<Continuation>,
}

/// What is done when something else is complete.
struct Continuation(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Continuation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Continuation")
    }
}

impl WatchStatus {
    /// Of a set that nothing is read for: its changes are given.
    pub fn stopped() -> Self {
        let inner = Inner { state: WatchState::Stopped, ..Inner::default() };
        Self(Mutex::new(inner))
    }

    /// The state of the watch.
    pub fn state(&self) -> WatchState {
        self.lock().state.clone()
    }

    /// When the last full scan ended.
    pub fn last_scan(&self) -> Option<Timestamp> {
        self.lock().last_scan
    }

    /// Files and folders that the last full scan could not read.
    pub fn problems(&self) -> u64 {
        self.lock().problems
    }

    /// What these problems are; some of them, if there are many.
    pub fn problem_texts(&self) -> Vec<String> {
        self.lock().problem_texts.clone()
    }

    /// The folder as it was last read. Another one may take its place and be read from then on.
    pub fn folder(&self) -> Option<Folder> {
        self.lock().folder.clone()
    }

    /// Of a set of entities: blank nodes in what was read last that belong to several entities, each
    /// of which has a copy, and those that belong to none and are not published.
    pub fn blank_nodes(&self) -> Option<(u64, u64)> {
        self.lock().blank_nodes
    }

    pub(crate) fn set_blank_nodes(&self, shared: u64, unreached: u64) {
        self.lock().blank_nodes = Some((shared, unreached));
    }

    /// Deletions that wait for a confirmation.
    pub fn held(&self) -> Option<Held> {
        self.lock().held
    }

    /// Confirms that the resources that are held were removed on purpose: the next scan, which
    /// begins at once, records their deletion, however many they are.
    pub fn confirm_deletions(&self) {
        self.lock().confirmed = true;
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        self.lock().confirmed
    }

    /// Whether held deletions were confirmed and are not recorded yet.
    pub fn is_confirming(&self) -> bool {
        let inner = self.lock();
        inner.held.is_some() && (inner.confirmed || inner.confirming)
    }

    pub(crate) fn take_confirmed(&self) -> bool {
        let mut inner = self.lock();
        inner.confirming = std::mem::take(&mut inner.confirmed);
        inner.confirming
    }

    /// Sets what the scan that ended holds.
    pub(crate) fn set_held(&self, held: Option<Held>) {
        let mut inner = self.lock();
        inner.held = held;
        inner.confirming = false;
    }

    pub(crate) fn set_folder(&self, folder: &Folder) {
        self.lock().folder = Some(folder.clone());
    }

    /// Calls this on the thread of the watch when it has read everything for the first time; at once
    /// if it has.
    pub fn when_read(&self, then: impl FnOnce() + Send + 'static) {
        let mut inner = self.lock();
        if inner.state == WatchState::Watching {
            drop(inner);
            then();
        } else {
            inner.when_read = Some(Continuation(Box::new(then)));
        }
    }

    pub(crate) fn set(&self, state: WatchState) {
        let mut inner = self.lock();
        // Trying again is not yet working again.
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
