//! Sorted statements in files, and sorting lines.

pub(crate) mod error;
pub(crate) mod lines;
pub(crate) mod order;
pub(crate) mod read_ahead;
pub(crate) mod sorted;
