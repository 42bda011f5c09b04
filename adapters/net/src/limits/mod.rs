//! Limits that connections, clients and runs share: bandwidth, pauses, and what a server asked for.

pub(crate) mod bandwidth;
pub(crate) mod budget;
pub(crate) mod pause;
pub(crate) mod size;
