//! From an address to the items of its documents.

pub(crate) mod input;
pub(crate) mod recognise;
pub(crate) mod run;
