//! Shares of clients and of requests: places, and temporary memory.

pub(crate) mod clients;
pub(crate) mod memory;
pub(crate) mod places;
