//! What a hub does beside deliveries: verifications, fetches, leases, retention, events.

pub(crate) mod events;
pub(crate) mod fetch;
pub(crate) mod leases;
pub(crate) mod retention;
pub(crate) mod verify;
