//! Deliveries: signatures and event streams.

pub(crate) mod events;
pub(crate) mod signature;
