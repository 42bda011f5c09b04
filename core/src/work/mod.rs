//! Work that lasts: how far it is, and on which threads.

pub(crate) mod meter;
pub(crate) mod threads;
