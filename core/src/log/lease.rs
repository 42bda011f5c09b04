//! Work of which one node at a time does each part.

use crate::{ChangeLog, ErrorKind, HolderNote, LogError, SetId};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval at which a wait for a lease checks it.
const CHECK: Duration = Duration::from_millis(10);

/// The leases of this node, for parts of the work that several nodes share.
pub trait Leases: Send + Sync {
    /// Takes the lease of a part as soon as no other node has it. Each call needs a
    /// [`Self::release`].
    fn want(&self, name: &str);

    /// Follows a part of the work that only other nodes do: this node never takes its lease, reads the notes
    /// of its holder, and counts the part as done elsewhere. Each call needs a [`Self::release`].
    fn observe(&self, name: &str);

    /// Whether this node may do the part of the work now. Does not block.
    fn is_held(&self, name: &str) -> bool;

    /// The number of this process in the rows of its leases.
    fn process(&self) -> i64;

    /// Whether another node had the lease at the last attempt to take it.
    fn is_elsewhere(&self, name: &str) -> bool;

    /// Gives the part to another node, because this node cannot do it. The node tries to get the
    /// part again after the length of a lease.
    fn give_up(&self, name: &str);

    /// Ends the wish for a part, after the end of its work, or the observation of a part.
    fn release(&self, name: &str);

    /// Publishes a note about a wanted part for other nodes, as long as this node holds its lease. Does
    /// not block: other nodes read the note within about a second. A note with more than
    /// [`NOTE_BYTES_MAX`](crate::NOTE_BYTES_MAX) bytes is not published.
    fn publish(&self, name: &str, note: String);

    /// The newest note of another node that holds the lease of a wanted part. Does not block.
    fn note_of_holder(&self, name: &str) -> Option<Arc<HolderNote>>;

    /// Leaves a request for the process `holder`. Equal requests that wait at the same time are one.
    /// Returns `false` if this process does not hold the lease any more, or if
    /// [`REQUESTS_MAX`](crate::REQUESTS_MAX) requests wait. Blocks.
    ///
    /// # Errors
    /// The store fails, or the request has more than
    /// [`REQUEST_BYTES_MAX`](crate::REQUEST_BYTES_MAX) bytes.
    fn ask(&self, name: &str, holder: i64, request: &str) -> Result<bool, LogError>;

    /// Takes the requests of other nodes to this process, each once, in their order. Does not block:
    /// requests arrive within about a second after the first call or note.
    fn take_requests(&self, name: &str) -> Vec<String>;
}

/// The lease of one part of the work, such as the watch of a folder. Check it immediately before each
/// step that another node must not do at the same time. Dropping the last clone releases the lease.
#[derive(Clone, Debug, Default)]
pub struct Lease(Option<Arc<Part>>);

struct Part {
    leases: Arc<dyn Leases>,
    name: String,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.leases.release(&self.name);
    }
}

impl Lease {
    /// The lease of a process that does not share its store, which is always held.
    pub const fn always() -> Self {
        Self(None)
    }

    /// The lease of a part of the work that several nodes share.
    pub fn of(leases: Arc<dyn Leases>, name: impl Into<String>) -> Self {
        let name = name.into();
        leases.want(&name);
        Self(Some(Arc::new(Part { leases, name })))
    }

    /// The lease of a part of the work that only other nodes do, which this node never holds.
    pub fn observed(leases: Arc<dyn Leases>, name: impl Into<String>) -> Self {
        let name = name.into();
        leases.observe(&name);
        Self(Some(Arc::new(Part { leases, name })))
    }

    /// Whether this node may do the work now.
    pub fn is_held(&self) -> bool {
        self.0.as_ref().is_none_or(|part| part.leases.is_held(&part.name))
    }

    /// Checks that this node may do the work now.
    ///
    /// # Errors
    /// The lease is over.
    pub fn check(&self) -> Result<(), LogError> {
        if self.is_held() {
            return Ok(());
        }
        Err(Self::over())
    }

    /// The error of work whose lease is over.
    pub fn over() -> LogError {
        LogError::new(ErrorKind::Busy, "the lease of this work is over, and another node may do it")
    }

    /// Whether another node does the work.
    pub fn is_elsewhere(&self) -> bool {
        self.0.as_ref().is_some_and(|part| part.leases.is_elsewhere(&part.name))
    }

    /// Whether other nodes may do the work.
    pub const fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// Makes this process the worker of a set. The result records in the log until another process takes
    /// over; then the log refuses what it records.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if another process has the lease; else when the store fails.
    pub fn take_over(
        &self,
        log: &Arc<dyn ChangeLog>,
        set: SetId,
    ) -> Result<Arc<dyn ChangeLog>, LogError> {
        let Some(part) = &self.0 else { return Ok(Arc::clone(log)) };
        let view = log.take_over(set, &part.name, part.leases.process())?;
        Ok(view.unwrap_or_else(|| Arc::clone(log)))
    }

    /// Publishes a note for other nodes, if there are others.
    pub fn publish(&self, note: String) {
        if let Some(part) = &self.0 {
            part.leases.publish(&part.name, note);
        }
    }

    /// The note of another node that does the work.
    pub fn note_of_holder(&self) -> Option<Arc<HolderNote>> {
        self.0.as_ref().and_then(|part| part.leases.note_of_holder(&part.name))
    }

    /// Leaves a request for the process that does the work; returns `false` if the request was not
    /// accepted. Blocks.
    ///
    /// # Errors
    /// The store fails, or the request is too long.
    pub fn ask(&self, holder: i64, request: &str) -> Result<bool, LogError> {
        self.0.as_ref().map_or(Ok(false), |part| part.leases.ask(&part.name, holder, request))
    }

    /// Takes the requests of other nodes to this process.
    pub fn take_requests(&self) -> Vec<String> {
        self.0.as_ref().map(|part| part.leases.take_requests(&part.name)).unwrap_or_default()
    }

    /// Lets another node do the work, if there are others.
    pub fn give_up(&self) {
        if let Some(part) = &self.0 {
            part.leases.give_up(&part.name);
        }
    }
}

/// A part of the work that is done on request, such as an import.
#[derive(Clone, Default)]
pub struct WorkOnRequest(Option<(Arc<dyn Leases>, String)>);

impl fmt::Debug for WorkOnRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkOnRequest").field(&self.0.as_ref().map(|(_, name)| name)).finish()
    }
}

impl WorkOnRequest {
    /// Work of a process that does not share its store.
    pub const fn always() -> Self {
        Self(None)
    }

    /// Work that several nodes share.
    pub fn of(leases: Arc<dyn Leases>, name: impl Into<String>) -> Self {
        Self(Some((leases, name.into())))
    }

    /// Waits for the lease of the work; `None` if another node has it for the whole time. Blocks.
    pub fn take(&self, patience: Duration) -> Option<Lease> {
        let Some((leases, name)) = &self.0 else { return Some(Lease::always()) };
        let lease = Lease::of(Arc::clone(leases), name);
        let begin = Instant::now();
        while !lease.is_held() {
            if begin.elapsed() >= patience {
                return None;
            }
            std::thread::sleep(CHECK);
        }
        Some(lease)
    }
}
