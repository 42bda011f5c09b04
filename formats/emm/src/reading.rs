//! Limits and counters while a document is read.

use crate::item::Item;
use serde::de::Error;
use std::cell::Cell;

/// Most activities in a document. Feeds have 100 to 10,000 on a page, or all in one document.
pub(crate) const ITEMS_MAX: usize = 1_000_000;
/// Bytes in memory for a document, including the structures around texts.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// How a document is read: its address, and the remaining memory.
///
/// An element needs more memory than its text: `{}` in an array takes three bytes in a document,
/// and a relative URL becomes as long as the document's URL.
pub(crate) struct Reading<'u> {
    pub(crate) url: &'u str,
    items: Cell<usize>,
    bytes: Cell<usize>,
    /// URLs that were left out because they are too long.
    pub(crate) overlong: Cell<u64>,
    /// The first unknown type of an activity; empty for an activity without type.
    pub(crate) unknown: Cell<Option<String>>,
    /// The first type of an activity in a wrong letter case, as written.
    pub(crate) other_letters: Cell<Option<String>>,
    /// The last member with a misspelt key, as written.
    pub(crate) odd_name: Cell<Option<String>>,
    /// Message about the exceeded limit.
    pub(crate) limit: Cell<Option<String>>,
    /// Message about a relevant part that would be left out.
    pub(crate) shape: Cell<Option<String>>,
}

impl<'u> Reading<'u> {
    pub(crate) fn new(url: &'u str) -> Self {
        Self::with_room(url, KEPT_BYTES_MAX)
    }

    pub(crate) fn with_room(url: &'u str, bytes: usize) -> Self {
        Self {
            url,
            items: Cell::new(ITEMS_MAX),
            bytes: Cell::new(bytes),
            overlong: Cell::default(),
            unknown: Cell::default(),
            other_letters: Cell::default(),
            odd_name: Cell::default(),
            limit: Cell::default(),
            shape: Cell::default(),
        }
    }

    /// Reserves memory for a part with a text of this length.
    pub(crate) fn keep<P, E: Error>(&self, text_bytes: usize) -> Result<(), E> {
        let left = self.bytes.get().checked_sub(size_of::<P>() + text_bytes);
        self.bytes.set(left.ok_or_else(|| {
            self.over(format!("more than {} MiB have to be kept of it", KEPT_BYTES_MAX >> 20))
        })?);
        Ok(())
    }

    pub(crate) fn keep_item<E: Error>(&self) -> Result<(), E> {
        let left = self.items.get().checked_sub(1);
        self.items.set(
            left.ok_or_else(|| self.over(format!("it has more than {ITEMS_MAX} activities")))?,
        );
        self.keep::<Item, E>(0)
    }

    /// Error for a relevant part that would be left out.
    pub(crate) fn refuse<E: Error>(&self, why: String) -> E {
        let error = E::custom(&why);
        self.shape.set(Some(why));
        error
    }

    /// Error for a member with a misspelt key.
    pub(crate) fn refuse_name<E: Error>(&self) -> E {
        let name = self.odd_name.take().unwrap_or_default();
        self.refuse(format!(
            "it has a member `{name}`, which is not written so in Activity Streams"
        ))
    }

    pub(crate) fn over<E: Error>(&self, limit: String) -> E {
        let error = E::custom(&limit);
        self.limit.set(Some(limit));
        error
    }
}
