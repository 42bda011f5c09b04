//! Readers: from the documents of one protocol each to listed resources and changes.

pub(crate) mod resourcesync;

pub use resourcesync::Tolerance;
