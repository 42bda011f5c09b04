//! Leases of parts of the work of a Source.
//!
//! A thread takes and renews all leases of the process in one statement, six times in the length
//! of a lease. A lease counts as held in its first half only, measured by the monotonic clock from
//! the start of the renewal, so that a process which was stopped does not start work that another
//! node does already.

use crate::postgres::client::Client;
use crate::postgres::lease_notes;
use crate::postgres::shared_values::{Param, database_now, random_number};
use abreast_core::{ErrorKind, HolderNote, Leases, LogError, NOTE_BYTES_MAX, NodeRoles};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio_postgres::types::Type;

/// Takes wanted leases that are over, and renews the leases of this process.
const RENEW: &str = concat!(
    "INSERT INTO abreast.leases AS old (name, owner, node, until) SELECT name, $2, $3, ",
    database_now!(),
    " + $4 FROM unnest($1::text[]) AS wanted (name) ORDER BY name \
     ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, node = excluded.node, until = excluded.until \
     WHERE old.owner = $2 OR old.until <= ",
    database_now!(),
    " RETURNING name, ",
    database_now!()
);
/// Interval at which notes of other nodes, and their requests, are read.
const EXCHANGE: Duration = Duration::from_secs(1);
const RENEWING: &str = "cannot renew the leases of this node";
const RELEASING: &str = "cannot release the leases of this node";
const RELEASE: &str = "DELETE FROM abreast.leases WHERE owner = $2 AND name = ANY ($1)";

/// Options of a node that shares a store with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOptions {
    /// The name under which status and logs of other nodes show this node.
    pub name: String,
    /// Time after which other nodes take over the work of a node that does not renew its lease.
    pub lease: Duration,
    /// The roles of this node, which status shows. A node without [`NodeRole::Hub`](abreast_core::NodeRole::Hub) delivers nothing.
    pub roles: NodeRoles,
}

impl Default for NodeOptions {
    fn default() -> Self {
        let (lease, roles) = (Duration::from_secs(15), NodeRoles::default());
        Self { name: "abreast".to_owned(), lease, roles }
    }
}

/// The leases of this process in a PostgreSQL database. Dropping the value releases them.
pub struct PostgresLeases {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for PostgresLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLeases").finish_non_exhaustive()
    }
}

struct Shared {
    client: Arc<Client>,
    node: String,
    length: Duration,
    owner: i64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    parts: BTreeMap<String, Part>,
    /// Parts that another node may do now.
    released: Vec<String>,
    /// Whether a part was added since the last renewal.
    has_new: bool,
    /// Whether a note was published since the last exchange of notes.
    has_note: bool,
    is_stopping: bool,
}

/// A part of the work that this process wants to do.
struct Part {
    /// The lease counts as held before this time.
    until: Option<Instant>,
    /// The part is not wanted before this time.
    not_before: Instant,
    /// Whether another process had the lease at the last attempt to take it.
    is_elsewhere: bool,
    /// Number of wishes for the part that were not released.
    wishes: usize,
    /// Whether this process takes the lease, and does not only observe its holder.
    may_take: bool,
    /// Whether the work of this part uses notes.
    has_notes: bool,
    /// The note for other nodes, and whether it is stored.
    note: Option<(String, bool)>,
    /// The note of another node that holds the lease.
    note_of_holder: Option<Arc<HolderNote>>,
    /// Requests of other nodes to this process.
    requests: Vec<String>,
}

impl Part {
    fn new(may_take: bool) -> Self {
        Self {
            until: None,
            not_before: Instant::now(),
            is_elsewhere: !may_take,
            wishes: 0,
            may_take,
            has_notes: false,
            note: None,
            note_of_holder: None,
            requests: Vec::new(),
        }
    }

    fn is_held(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }

    /// Another process has the lease, or none: what was exchanged before is over.
    fn lose(&mut self) {
        self.requests.clear();
        self.note = None;
    }
}

impl PostgresLeases {
    /// Starts to take leases for a node with this name.
    ///
    /// # Errors
    /// The system cannot start a thread, or does not give random numbers.
    pub(crate) fn start(
        client: Arc<Client>,
        node: String,
        length: Duration,
    ) -> Result<Self, LogError> {
        let owner = random_number()?;
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { client, node, length, owner, state, changed });
        let worker = Arc::clone(&shared);
        let thread: io::Result<_> =
            std::thread::Builder::new().name("leases".into()).spawn(move || worker.run());
        let thread = thread.map_err(|cause| {
            LogError::new(ErrorKind::Io, format!("cannot start the thread of leases: {cause}"))
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Leases for PostgresLeases {
    fn want(&self, name: &str) {
        self.shared.add(name, true);
    }

    fn observe(&self, name: &str) {
        self.shared.add(name, false);
    }

    fn release(&self, name: &str) {
        let mut state = self.shared.lock();
        let Some(part) = state.parts.get_mut(name) else { return };
        part.wishes -= 1;
        if part.wishes == 0 {
            state.parts.remove(name);
            state.released.push(name.to_owned());
            self.shared.changed.notify_all();
        }
    }

    fn is_held(&self, name: &str) -> bool {
        self.shared.lock().parts.get(name).is_some_and(Part::is_held)
    }

    fn process(&self) -> i64 {
        self.shared.owner
    }

    fn is_elsewhere(&self, name: &str) -> bool {
        self.shared.lock().parts.get(name).is_some_and(|part| part.is_elsewhere)
    }

    fn give_up(&self, name: &str) {
        let mut state = self.shared.lock();
        let Some(part) = state.parts.get_mut(name) else { return };
        let was_held = part.until.take().is_some();
        part.lose();
        part.not_before = Instant::now() + self.shared.length;
        if was_held {
            state.released.push(name.to_owned());
            self.shared.changed.notify_all();
        }
    }

    fn publish(&self, name: &str, note: String) {
        let mut state = self.shared.lock();
        let Some(part) = state.parts.get_mut(name) else { return };
        part.has_notes = true;
        let is_known = part.note.as_ref().is_some_and(|(known, _)| *known == note);
        if is_known || note.len() > NOTE_BYTES_MAX || !part.is_held() {
            return;
        }
        part.note = Some((note, false));
        state.has_note = true;
        self.shared.changed.notify_all();
    }

    fn note_of_holder(&self, name: &str) -> Option<Arc<HolderNote>> {
        let mut state = self.shared.lock();
        let part = state.parts.get_mut(name)?;
        part.has_notes = true;
        part.note_of_holder.clone()
    }

    fn ask(&self, name: &str, holder: i64, request: &str) -> Result<bool, LogError> {
        lease_notes::ask(&self.shared.client, name, holder, request)
    }

    fn take_requests(&self, name: &str) -> Vec<String> {
        let mut state = self.shared.lock();
        let Some(part) = state.parts.get_mut(name) else { return Vec::new() };
        part.has_notes = true;
        if part.is_held() { std::mem::take(&mut part.requests) } else { Vec::new() }
    }
}

impl Drop for PostgresLeases {
    fn drop(&mut self) {
        self.shared.lock().is_stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl State {
    /// Whether leases were released or added since the last renewal.
    const fn must_renew(&self) -> bool {
        self.has_new || !self.released.is_empty()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a part to the parts of this process.
    fn add(&self, name: &str, may_take: bool) {
        let mut state = self.lock();
        let part = state.parts.entry(name.to_owned()).or_insert_with(|| Part::new(may_take));
        part.wishes += 1;
        part.may_take |= may_take;
        state.has_new = true;
        self.changed.notify_all();
    }

    fn run(&self) {
        let mut is_failing = false;
        let mut next_renewal = Instant::now();
        loop {
            let begin = Instant::now();
            if begin >= next_renewal || self.lock().must_renew() {
                let answer = self.renew();
                match &answer {
                    Ok(()) if is_failing => {
                        tracing::info!("the leases of this node are renewed again");
                    }
                    Err(error) if !is_failing => tracing::warn!(
                        "{error}; this node stops watching folders and making files within {:?}, until its leases are renewed",
                        self.length / 2
                    ),
                    _ => {}
                }
                is_failing = answer.is_err();
                next_renewal = Instant::now() + self.length / 6;
            }
            // The renewal reports when the database does not answer.
            if !is_failing && let Err(error) = self.exchange() {
                tracing::debug!("{error}");
            }
            let now = Instant::now();
            let pause = next_renewal.saturating_duration_since(now).min(EXCHANGE);
            let state = self.lock();
            let (state, _) = self
                .changed
                .wait_timeout_while(state, pause, |state| {
                    !state.is_stopping && !state.must_renew() && !state.has_note
                })
                .unwrap_or_else(PoisonError::into_inner);
            if state.is_stopping {
                break;
            }
        }
        let held: Vec<String> = {
            let mut state = self.lock();
            let released = std::mem::take(&mut state.released);
            state.parts.keys().cloned().chain(released).collect()
        };
        if let Err(error) = self.delete(&held) {
            tracing::warn!(
                "{error}; other nodes take the work of this node after {:?}",
                self.length
            );
        }
    }

    /// Releases what is not wanted, and renews the other leases.
    fn renew(&self) -> Result<(), LogError> {
        let begin = Instant::now();
        let (released, wanted): (Vec<String>, Vec<String>) = {
            let mut state = self.lock();
            state.has_new = false;
            let wanted = state.parts.iter();
            let wanted = wanted.filter(|(_, part)| part.may_take && part.not_before <= begin);
            let wanted = wanted.map(|(name, _)| name.clone()).collect();
            (std::mem::take(&mut state.released), wanted)
        };
        // After a failure, they end by themselves.
        self.delete(&released)?;
        let micros = i64::try_from(self.length.as_micros()).unwrap_or(i64::MAX);
        let params: [Param<'_>; 4] = [
            (&wanted, Type::TEXT_ARRAY),
            (&self.owner, Type::INT8),
            (&self.node, Type::TEXT),
            (&micros, Type::INT8),
        ];
        let rows = if wanted.is_empty() {
            Vec::new()
        } else {
            self.client.query_lease(RENEWING, self.length / 3, RENEW, &params)?
        };
        if rows.is_empty() {
            // Other nodes have all leases.
            self.client.read_clock(self.length / 3)?;
        }
        self.client.set_clock(&rows, 1, begin);
        let held: HashSet<&str> = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
        let mut state = self.lock();
        for name in wanted {
            let is_held = held.contains(&&*name);
            if let Some(part) = state.parts.get_mut(&name)
                && part.not_before <= begin
            {
                part.until = is_held.then(|| begin + self.length / 2);
                part.is_elsewhere = !is_held;
                if is_held {
                    part.note_of_holder = None;
                } else {
                    part.lose();
                }
            }
        }
        Ok(())
    }

    /// Publishes new notes, reads the notes of other nodes, and takes their requests.
    fn exchange(&self) -> Result<(), LogError> {
        let (names, notes): (Vec<String>, Vec<(String, String)>) = {
            let mut state = self.lock();
            state.has_note = false;
            let parts = state.parts.iter().filter(|(_, part)| part.has_notes);
            let new = parts.clone().filter_map(|(name, part)| match &part.note {
                Some((note, false)) if part.is_held() => Some((name.clone(), note.clone())),
                _ => None,
            });
            (parts.clone().map(|(name, _)| name.clone()).collect(), new.collect())
        };
        let (client, limit) = (&self.client, self.length / 6);
        let stored = lease_notes::write(client, limit, self.owner, &notes)?;
        {
            let mut state = self.lock();
            for (name, note) in notes.iter().filter(|(name, _)| stored.contains(name)) {
                if let Some(Part { note: Some((current, is_stored)), .. }) =
                    state.parts.get_mut(name)
                {
                    *is_stored = current == note;
                }
            }
        }
        let found = lease_notes::read(client, limit, &names)?;
        let mut asked = Vec::new();
        {
            let mut state = self.lock();
            let mut notes: BTreeMap<String, HolderNote> = BTreeMap::new();
            for row in found {
                if row.note.holder != self.owner {
                    notes.insert(row.name, row.note);
                } else if row.has_requests
                    && state.parts.get(&row.name).is_some_and(|part| part.requests.is_empty())
                {
                    asked.push(row.name);
                }
            }
            for name in &names {
                let Some(part) = state.parts.get_mut(name) else { continue };
                let note = notes.remove(name).filter(|note| !note.text.is_empty());
                // Readers recognise a known note by its address.
                if part.note_of_holder.as_deref() != note.as_ref() {
                    part.note_of_holder = note.map(Arc::new);
                }
            }
        }
        for (name, requests) in lease_notes::take(client, limit, self.owner, &asked)? {
            if let Some(part) = self.lock().parts.get_mut(&name) {
                part.requests.extend(requests);
            }
        }
        Ok(())
    }

    fn delete(&self, names: &[String]) -> Result<(), LogError> {
        if names.is_empty() {
            return Ok(());
        }
        let names = names.to_vec();
        let params: [Param<'_>; 2] = [(&names, Type::TEXT_ARRAY), (&self.owner, Type::INT8)];
        self.client.query_lease(RELEASING, self.length / 3, RELEASE, &params).map(drop)
    }
}
