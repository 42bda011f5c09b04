//! The plan: what is to be done so that the copy equals the Source, in the words of no protocol.

pub(crate) mod changes;
pub(crate) mod comparison;
pub(crate) mod listed;
pub(crate) mod planner;
