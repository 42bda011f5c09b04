//! Work that lasts: how far it is.

pub(crate) mod meter;
pub(crate) mod threads;
