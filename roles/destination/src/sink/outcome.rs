//! Outcomes of items, with the notices about them.

use crate::report::failure::Failure;
use abreast_store::mirror::Row;

/// The outcome of storing or comparing one item.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The resource is stored, and verified as far as possible.
    Stored { row: Row, created: bool, notices: Vec<Notice> },
    /// The current bytes were already stored.
    Right { row: Row },
    /// The document contains no statements about the resource, so the resource does not exist.
    Gone,
    /// The item waits for its parent folder.
    Conflict,
    /// The item failed, and nothing was stored.
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
