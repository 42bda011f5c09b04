//! Figures of a running program, for monitoring.

pub(crate) mod access;
pub(crate) mod bounded;
pub(crate) mod followers;
pub(crate) mod metrics;
