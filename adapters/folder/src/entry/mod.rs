//! One entry of a folder: opening, times, locks.

pub(crate) mod dir;
pub(crate) mod error;
pub(crate) mod locked;
pub(crate) mod stat;
