//! Outcomes of items, with what is reported about them.

use crate::report::events::Event;
use crate::report::events::Item;
use crate::report::events::ItemAction;
use crate::report::failure::Failure;
use crate::report::reporter::Reporter;
use crate::sink::Sink;
use abreast_store::mirror::Pending;
use abreast_store::mirror::Row;

/// The outcome of one item.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is there, verified as far as it can be.
    Stored { row: Row, created: bool, notices: Vec<Notice> },
    /// The right bytes were there already.
    Right { row: Row },
    /// The Source states nothing about it: there is no such resource.
    Gone,
    /// Waits for its parent folder.
    Conflict,
    /// Not done.
    Failed(Failure),
}

/// A notice about an item that was done.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Notice {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl Reporter<'_> {
    /// Reports what became of a resource, by its place in the copy where that is known.
    pub(crate) fn item(
        &self,
        sink: &dyn Sink,
        item: &Pending,
        leaf: bool,
        action: ItemAction,
        bytes: u64,
    ) {
        if !self.observer.wants_items() {
            return;
        }
        let path = sink.shown(&item.uri, leaf);
        let href = item.access.as_ref().and_then(|access| access.href.as_deref());
        self.observer.event(&Event::Item(Item {
            uri: &item.uri,
            href,
            path: &path,
            action,
            bytes,
        }));
    }
}
