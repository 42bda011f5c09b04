//! Work that lasts: how far it is, and which node does it.

pub(crate) mod lease;
pub(crate) mod meter;
