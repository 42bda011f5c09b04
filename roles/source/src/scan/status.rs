//! Status of a watch, for readiness, metrics and the API.

pub use crate::scan::watch_state::WatchState;

use crate::scan::guard::Held;
use crate::scan::watch_note::{WatchNote, WatchRequest, next_judgement};
use abreast_core::{ErrorKind, Lease, LogError};
use abreast_folder::Folder;
use abreast_webtypes::Timestamp;
use std::sync::Mutex;

/// Most problems whose text is stored; further problems are counted.
const MAX_TEXTS: usize = 10;

/// Status that a watch shares with its readers. If another node watches the folder, readers see the
/// published status of the other watch, and requests are passed on to the other node.
#[derive(Debug, Default)]
pub struct WatchStatus(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The status of the watch in this process.
    own: WatchNote,
    /// The status of the watch of another node.
    elsewhere: Option<Elsewhere>,
    /// The lease of the watch, while the watch runs and other nodes share the store.
    lease: Option<Lease>,
    folder: Option<Folder>,
    confirmed: bool,
    /// Whether a scan that is still running uses the confirmation.
    confirming: bool,
    when_read: Option<Continuation>,
    /// A scan was requested, and has not begun.
    scan_wanted: bool,
    /// Nothing is read: the changes of the set come from another writer.
    is_unwatched: bool,
}

/// The watch of another node.
#[derive(Debug)]
struct Elsewhere {
    holder: i64,
    note: WatchNote,
    /// The judgement whose confirmation was sent to the node.
    asked: Option<u64>,
}

impl Inner {
    /// The status to show.
    const fn shown(&self) -> &WatchNote {
        match &self.elsewhere {
            Some(elsewhere) => &elsewhere.note,
            None => &self.own,
        }
    }
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
        let own = WatchNote { state: WatchState::Stopped, ..WatchNote::default() };
        Self(Mutex::new(Inner { own, is_unwatched: true, ..Inner::default() }))
    }

    /// Returns the current state of the watch.
    pub fn state(&self) -> WatchState {
        self.lock().shown().state.clone()
    }

    /// Returns the end of the last full scan; `None` before the first scan ends.
    pub fn last_scan(&self) -> Option<Timestamp> {
        self.lock().shown().last_scan()
    }

    /// Returns the number of files and folders that the last full scan could not read.
    pub fn problems(&self) -> u64 {
        self.lock().shown().problems
    }

    /// Returns the texts of some of these problems, up to ten.
    pub fn problem_texts(&self) -> Vec<String> {
        self.lock().shown().problem_texts.clone()
    }

    /// Returns the folder that was last read. If the folder is replaced, the watch opens the new
    /// folder.
    pub fn folder(&self) -> Option<Folder> {
        self.lock().folder.clone()
    }

    /// Returns two numbers for sets of entities: blank nodes that belong to several entities, each
    /// of which has a copy, and blank nodes that do not belong to any entity and are not published.
    pub fn blank_nodes(&self) -> Option<(u64, u64)> {
        self.lock().shown().blank_nodes
    }

    pub(crate) fn set_blank_nodes(&self, shared: u64, unreached: u64) {
        self.lock().own.blank_nodes = Some((shared, unreached));
    }

    /// Returns the deletions that wait for a confirmation.
    pub fn held(&self) -> Option<Held> {
        self.lock().shown().held
    }

    /// Confirms the held deletions of the watch in this process. The next scan starts immediately and
    /// records all deletions, without the guard.
    pub fn confirm_deletions(&self) {
        self.lock().confirmed = true;
    }

    /// Confirms the deletions that are held now, also if another node watches the folder. That node
    /// ignores the confirmation if its judgement has changed. Returns whether deletions are held. Blocks.
    ///
    /// # Errors
    /// The watching node is not known, or the store fails.
    pub fn confirm_held(&self) -> Result<bool, LogError> {
        let judgement = {
            let mut inner = self.lock();
            let judgement = inner.shown().held.map(|_| inner.shown().judgement);
            if inner.shown().state == WatchState::Elsewhere {
                return Err(no_watch());
            }
            let Some(judgement) = judgement else { return Ok(false) };
            if inner.elsewhere.is_none() {
                inner.confirmed = true;
                return Ok(true);
            }
            judgement
        };
        self.ask(WatchRequest::Confirm(judgement))?;
        Ok(true)
    }

    /// Whether the set has something to read: a folder, files or an endpoint.
    pub fn can_scan(&self) -> bool {
        !self.lock().is_unwatched
    }

    /// Requests that the folder, the files or the endpoint is read now, or again after the reading in
    /// progress, also if another node watches them. Several requests before the reading begins are one.
    /// Returns whether the set has something to read. Blocks if another node watches them.
    ///
    /// # Errors
    /// The watching node is not known, or the store fails.
    pub fn request_scan(&self) -> Result<bool, LogError> {
        {
            let mut inner = self.lock();
            if inner.is_unwatched {
                return Ok(false);
            }
            if inner.elsewhere.is_none() && inner.own.state != WatchState::Elsewhere {
                inner.scan_wanted = true;
                return Ok(true);
            }
        }
        self.ask(WatchRequest::Scan)?;
        Ok(true)
    }

    /// Leaves a request for the node that watches the folder.
    fn ask(&self, request: WatchRequest) -> Result<(), LogError> {
        let (lease, holder) = {
            let inner = self.lock();
            let holder = inner.elsewhere.as_ref().map(|elsewhere| elsewhere.holder);
            inner.lease.clone().zip(holder).ok_or_else(no_watch)?
        };
        if !lease.ask(holder, &request.to_string())? {
            return Err(no_watch());
        }
        let mut inner = self.lock();
        if let (Some(elsewhere), WatchRequest::Confirm(judgement)) = (&mut inner.elsewhere, request)
            && elsewhere.holder == holder
        {
            elsewhere.asked = Some(judgement);
        }
        Ok(())
    }

    /// Carries out a request of another node. A confirmation of another judgement is ignored.
    pub(crate) fn carry_out(&self, request: WatchRequest) {
        let mut inner = self.lock();
        match request {
            WatchRequest::Scan => inner.scan_wanted = true,
            WatchRequest::Confirm(judgement) => {
                inner.confirmed |= inner.own.held.is_some() && inner.own.judgement == judgement;
            }
        }
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
        let is_confirming = match &inner.elsewhere {
            Some(Elsewhere { note, asked, .. }) => {
                note.is_confirming || *asked == Some(note.judgement)
            }
            None => inner.confirmed || inner.confirming,
        };
        is_confirming && inner.shown().held.is_some()
    }

    /// Whether other nodes may watch the folder.
    pub fn is_shared(&self) -> bool {
        self.lock().lease.is_some()
    }

    /// A number that changes when other deletions are held.
    pub fn judgement(&self) -> u64 {
        self.lock().shown().judgement
    }

    pub(crate) fn take_confirmed(&self) -> bool {
        let mut inner = self.lock();
        inner.confirming = std::mem::take(&mut inner.confirmed);
        inner.confirming
    }

    /// Keys of the resources whose deletion is held, at most 20.
    pub fn held_names(&self) -> Vec<String> {
        self.lock().shown().held_names.clone()
    }

    /// Sets the deletions that the last scan holds, with the keys of some of the resources.
    pub(crate) fn set_held(&self, held: Option<Held>, names: Vec<String>) {
        let mut inner = self.lock();
        if inner.own.held != held || inner.own.held_names != names {
            inner.own.judgement = next_judgement();
        }
        (inner.own.held, inner.own.held_names) = (held, names);
        inner.confirming = false;
    }

    /// Forgets held deletions, and requests for the watch: another node judges the deletions again.
    pub(crate) fn forget_judgements(&self) {
        let mut inner = self.lock();
        (inner.own.held, inner.own.judgement) = (None, next_judgement());
        inner.own.held_names.clear();
        (inner.confirmed, inner.confirming, inner.scan_wanted) = (false, false, false);
    }

    /// Shares the status with other nodes by the notes of this lease; `None` ends this.
    pub(crate) fn share(&self, lease: Option<Lease>) {
        let mut inner = self.lock();
        (inner.lease, inner.elsewhere) = (lease, None);
    }

    /// The status of the watch in this process, for other nodes.
    pub(crate) fn note(&self) -> WatchNote {
        let inner = self.lock();
        let is_confirming = inner.confirmed || inner.confirming;
        WatchNote { is_confirming, ..inner.own.clone() }
    }

    /// Shows the status that another node published, if there is one.
    pub(crate) fn show(&self, of_holder: Option<(i64, WatchNote)>) {
        let mut inner = self.lock();
        inner.elsewhere = of_holder.map(|(holder, note)| {
            let before = inner.elsewhere.take().filter(|before| before.holder == holder);
            Elsewhere { holder, note, asked: before.and_then(|before| before.asked) }
        });
    }

    pub(crate) fn set_folder(&self, folder: &Folder) {
        self.lock().folder = Some(folder.clone());
    }

    /// Calls `then` after the first complete scan, in the thread of the watch; immediately if the
    /// first scan is already complete.
    pub fn when_read(&self, then: impl FnOnce() + Send + 'static) {
        let mut inner = self.lock();
        if inner.own.state == WatchState::Watching {
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
        let failing = matches!(inner.own.state, WatchState::Vanished(_) | WatchState::Failed(_));
        if !(failing && state == WatchState::Scanning) {
            inner.own.state = state;
        }
        let is_read = inner.own.state == WatchState::Watching;
        let then = if is_read { inner.when_read.take() } else { None };
        drop(inner);
        if let Some(Continuation(then)) = then {
            then();
        }
    }

    pub(crate) fn scanned(&self, at: Timestamp, problems: u64, mut texts: Vec<String>) {
        texts.truncate(MAX_TEXTS);
        let mut inner = self.lock();
        inner.own.last_scan = Some(at.as_micros());
        inner.own.problems = problems;
        inner.own.problem_texts = texts;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The error of a request to a watch that no node is known to have.
fn no_watch() -> LogError {
    LogError::new(
        ErrorKind::Unavailable,
        "no node is known to watch this set now\n  help: repeat the request after some seconds; \
         `abreast status --config FILE` lists the nodes with their leases",
    )
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
        assert!(status.request_scan().unwrap() && status.request_scan().unwrap());
        assert!(status.take_scan_wanted());
        assert!(!status.take_scan_wanted());
        let status = WatchStatus::stopped();
        assert!(!status.request_scan().unwrap());
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
