//! Outcomes of items, with what is reported about them.

use crate::report::failure::Failure;
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
