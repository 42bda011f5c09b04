//! Pins: contents that must not be removed yet, because a row that refers to them is being written.

use crate::ContentId;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of pins for each address in this process.
#[derive(Default)]
pub struct Pins(Mutex<HashMap<ContentId, usize>>);

impl fmt::Debug for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pins").field("addresses", &self.lock().len()).finish()
    }
}

impl Pins {
    /// Pins an address until the returned value is dropped.
    pub fn pin(self: &Arc<Self>, id: ContentId, length: u64) -> PinnedContent {
        *self.lock().entry(id).or_insert(0) += 1;
        PinnedContent { id, length, pins: Arc::clone(self) }
    }

    /// Whether an address is pinned now.
    pub fn is_pinned(&self, id: &ContentId) -> bool {
        self.lock().contains_key(id)
    }

    /// Whether no address is pinned now.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Acts unless the address is pinned; no address can be pinned meanwhile.
    pub fn unless_pinned<T>(&self, id: &ContentId, act: impl FnOnce() -> T) -> Option<T> {
        let pins = self.lock();
        let result = (!pins.contains_key(id)).then(act);
        drop(pins);
        result
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ContentId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stored bytes that are not removed while this value lives: hold it until the row that refers to
/// them is durable.
#[must_use = "the bytes may be collected as soon as this is dropped"]
pub struct PinnedContent {
    id: ContentId,
    length: u64,
    pins: Arc<Pins>,
}

impl PinnedContent {
    /// The digest under which the bytes are stored.
    pub const fn id(&self) -> ContentId {
        self.id
    }

    /// Number of the stored bytes.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The same pin with the number of bytes, which was unknown when it was made.
    pub const fn with_length(mut self, length: u64) -> Self {
        self.length = length;
        self
    }
}

impl Clone for PinnedContent {
    fn clone(&self) -> Self {
        self.pins.pin(self.id, self.length)
    }
}

impl Drop for PinnedContent {
    fn drop(&mut self) {
        let mut pins = self.pins.lock();
        if let Some(holders) = pins.get_mut(&self.id) {
            *holders -= 1;
            if *holders == 0 {
                pins.remove(&self.id);
            }
        }
    }
}

impl fmt::Debug for PinnedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedContent")
            .field("id", &self.id)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}
