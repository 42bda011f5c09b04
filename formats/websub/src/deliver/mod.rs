//! Deliveries: signatures, webhooks and event streams.

pub(crate) mod events;
pub(crate) mod signature;
pub(crate) mod webhook;
