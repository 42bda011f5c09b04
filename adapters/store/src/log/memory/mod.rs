//! The change log in memory, for tests.

pub(crate) mod log;
pub(crate) mod tables;
