//! Items of documents, and errors.

pub(crate) mod error;
pub(crate) mod item;
