//! Figures of a running program, for monitoring.

pub(crate) mod metrics;
