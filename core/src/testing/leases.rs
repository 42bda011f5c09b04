//! Leases in memory, and the contract of the notes and requests of [`Leases`].

use crate::{
    ErrorKind, HolderNote, Leases, LogError, NOTE_BYTES_MAX, REQUEST_BYTES_MAX, REQUESTS_MAX,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the contract waits for a note or a request.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time after which a request that is not passed on is considered lost.
const MOMENT: Duration = Duration::from_millis(1_500);

/// The leases of one of several nodes in memory. A lease is taken when it is free and wanted.
#[derive(Debug)]
pub struct MemoryLeases {
    shared: Arc<Mutex<Rows>>,
    owner: i64,
}

type Rows = BTreeMap<String, Row>;

#[derive(Debug, Default)]
struct Row {
    holder: Option<i64>,
    wanted: BTreeSet<i64>,
    /// The node that gave the part up, until another node has it.
    given_up: Option<i64>,
    note: Option<Arc<HolderNote>>,
    requests: Vec<String>,
}

impl Row {
    fn give(&mut self, holder: Option<i64>) {
        if self.holder != holder {
            (self.holder, self.note) = (holder, None);
            self.requests.clear();
        }
    }
}

impl MemoryLeases {
    /// Several nodes that share their leases.
    pub fn nodes(number: i64) -> Vec<Arc<Self>> {
        let shared = Arc::default();
        (0..number).map(|owner| Arc::new(Self { shared: Arc::clone(&shared), owner })).collect()
    }

    /// Takes a lease from its holder, whose time is over.
    pub fn take_over(&self, name: &str) {
        let mut rows = self.lock();
        let row = rows.entry(name.to_owned()).or_default();
        row.wanted.insert(self.owner);
        row.given_up = None;
        row.give(Some(self.owner));
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leases for MemoryLeases {
    fn want(&self, name: &str) {
        self.lock().entry(name.to_owned()).or_default().wanted.insert(self.owner);
    }

    fn observe(&self, name: &str) {
        self.lock().entry(name.to_owned()).or_default();
    }

    fn is_held(&self, name: &str) -> bool {
        let mut rows = self.lock();
        let Some(row) = rows.get_mut(name) else { return false };
        let is_free = row.holder.is_none() && row.given_up != Some(self.owner);
        if is_free && row.wanted.contains(&self.owner) {
            row.give(Some(self.owner));
        }
        row.holder == Some(self.owner)
    }

    fn process(&self) -> i64 {
        self.owner
    }

    fn is_elsewhere(&self, name: &str) -> bool {
        let rows = self.lock();
        rows.get(name).and_then(|row| row.holder).is_some_and(|holder| holder != self.owner)
    }

    fn give_up(&self, name: &str) {
        let mut rows = self.lock();
        if let Some(row) = rows.get_mut(name)
            && row.holder == Some(self.owner)
        {
            row.give(None);
            row.given_up = Some(self.owner);
        }
    }

    fn release(&self, name: &str) {
        let mut rows = self.lock();
        let Some(row) = rows.get_mut(name) else { return };
        row.wanted.remove(&self.owner);
        row.given_up = None;
        if row.holder == Some(self.owner) {
            row.give(None);
        }
    }

    fn publish(&self, name: &str, text: String) {
        let holder = self.owner;
        let mut rows = self.lock();
        if let Some(row) = rows.get_mut(name)
            && row.holder == Some(holder)
            && text.len() <= NOTE_BYTES_MAX
        {
            row.note = Some(Arc::new(HolderNote { holder, node: holder.to_string(), text }));
        }
    }

    fn note_of_holder(&self, name: &str) -> Option<Arc<HolderNote>> {
        let rows = self.lock();
        let note = rows.get(name).and_then(|row| row.note.clone());
        note.filter(|note| note.holder != self.owner)
    }

    fn ask(&self, name: &str, holder: i64, request: &str) -> Result<bool, LogError> {
        if request.len() > REQUEST_BYTES_MAX {
            return Err(LogError::new(ErrorKind::Refused, "the request is too long"));
        }
        let mut rows = self.lock();
        let Some(row) = rows.get_mut(name).filter(|row| row.holder == Some(holder)) else {
            return Ok(false);
        };
        let is_waiting = row.requests.iter().any(|known| known == request);
        let is_accepted = is_waiting || row.requests.len() < REQUESTS_MAX;
        if is_accepted && !is_waiting {
            row.requests.push(request.to_owned());
        }
        Ok(is_accepted)
    }

    fn take_requests(&self, name: &str) -> Vec<String> {
        let mut rows = self.lock();
        let row = rows.get_mut(name).filter(|row| row.holder == Some(self.owner));
        row.map(|row| std::mem::take(&mut row.requests)).unwrap_or_default()
    }
}

/// Checks the promises of [`Leases`] about notes and requests, with two nodes that share leases.
///
/// # Panics
/// When a promise is broken.
pub fn lease_notes_contract(one: &dyn Leases, two: &dyn Leases) {
    const PART: &str = "watch/papers";
    one.want(PART);
    until("the first node has the lease", || one.is_held(PART));
    two.want(PART);
    assert!(two.note_of_holder(PART).is_none() && two.take_requests(PART).is_empty());
    let note_for = |node: &dyn Leases, text: &str| {
        until("the note is read", || {
            node.note_of_holder(PART).is_some_and(|note| note.text == text)
        });
        node.note_of_holder(PART).map_or(0, |note| note.holder)
    };

    one.publish(PART, "first \"\u{e4}\"".to_owned());
    note_for(two, "first \"\u{e4}\"");
    one.publish(PART, "second".to_owned());
    let holder = note_for(two, "second");
    assert!(one.note_of_holder(PART).is_none(), "a node does not read its own note");
    one.publish(PART, "x".repeat(NOTE_BYTES_MAX + 1));
    one.publish("other", "not wanted".to_owned());
    two.publish(PART, "not the holder's".to_owned());
    std::thread::sleep(MOMENT);
    assert_eq!(note_for(two, "second"), holder);
    one.publish(PART, "x".repeat(NOTE_BYTES_MAX));
    note_for(two, &"x".repeat(NOTE_BYTES_MAX));

    let asked = |holder: i64, request: &str| two.ask(PART, holder, request).ok();
    assert_eq!(asked(holder, "scan"), Some(true));
    assert_eq!(asked(holder, "scan"), Some(true));
    assert_eq!(asked(holder.wrapping_add(1), "scan"), Some(false), "another process");
    assert_eq!(asked(holder, &"r".repeat(REQUEST_BYTES_MAX + 1)), None);
    let mut taken = Vec::new();
    until("the request arrives", || {
        taken.extend(one.take_requests(PART));
        !taken.is_empty()
    });
    std::thread::sleep(MOMENT);
    taken.extend(one.take_requests(PART));
    // The second request may follow the first one, or be the same.
    assert!(taken.len() <= 2 && taken.iter().all(|request| request == "scan"), "{taken:?}");
    assert!(two.take_requests(PART).is_empty());

    // Requests that nobody takes do not grow without limit.
    let accepted = (0..200).take_while(|n| asked(holder, &format!("{n}")) == Some(true)).count();
    assert!(accepted >= REQUESTS_MAX, "{accepted}");
    let mut taken = Vec::new();
    until("accepted requests arrive in their order", || {
        taken.extend(one.take_requests(PART));
        taken.len() >= accepted
    });
    assert_eq!(taken, (0..accepted).map(|n| n.to_string()).collect::<Vec<_>>());

    one.release(PART);
    until("the second node has the lease", || two.is_held(PART));
    assert_eq!(two.ask(PART, holder, "scan").ok(), Some(false), "not the former holder");
    one.want(PART);
    until("the first node finds the lease elsewhere", || one.is_elsewhere(PART));
    std::thread::sleep(MOMENT);
    assert!(one.note_of_holder(PART).is_none(), "not the note of the former holder");
    assert!(two.take_requests(PART).is_empty(), "not the requests to the former holder");
    two.publish(PART, "third".to_owned());
    let second = note_for(one, "third");
    assert_ne!(second, holder);
    two.release(PART);
    one.release(PART);

    // A node that only observes reads the notes, and leaves the lease to others.
    two.observe(PART);
    one.want(PART);
    until("the first node has the lease", || one.is_held(PART));
    one.publish(PART, "fourth".to_owned());
    let holder = note_for(two, "fourth");
    assert_eq!(two.ask(PART, holder, "scan").ok(), Some(true));
    one.release(PART);
    std::thread::sleep(MOMENT);
    assert!(!two.is_held(PART) && !one.is_held(PART), "an observer does not take the lease");
    two.release(PART);
}

/// Waits until the condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_in_memory_hold_the_contract() {
        let nodes = MemoryLeases::nodes(2);
        lease_notes_contract(&*nodes[0], &*nodes[1]);
    }
}
