//! Work of which one node at a time does each part.

use crate::{ErrorKind, LogError};
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

    /// Whether this node may do the part of the work now. Does not block.
    fn is_held(&self, name: &str) -> bool;

    /// Whether another node had the lease at the last attempt to take it.
    fn is_elsewhere(&self, name: &str) -> bool;

    /// Gives the part to another node, because this node cannot do it. The node tries to get the
    /// part again after the length of a lease.
    fn give_up(&self, name: &str);

    /// Ends the wish for a part, after the end of its work.
    fn release(&self, name: &str);
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
        Err(LogError::new(
            ErrorKind::Busy,
            "the lease of this work is over, and another node may do it",
        ))
    }

    /// Whether another node does the work.
    pub fn is_elsewhere(&self) -> bool {
        self.0.as_ref().is_some_and(|part| part.leases.is_elsewhere(&part.name))
    }

    /// Whether other nodes may do the work.
    pub const fn is_shared(&self) -> bool {
        self.0.is_some()
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
