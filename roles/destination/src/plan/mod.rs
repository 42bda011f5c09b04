//! The plan: the actions that make the copy equal to the Source, independent of the protocol.

pub(crate) mod changes;
pub(crate) mod comparison;
pub(crate) mod judge;
pub(crate) mod listed;
mod open;
mod patches;
pub(crate) mod planner;
pub(crate) mod planning;
