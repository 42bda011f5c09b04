//! The plan: the actions that make the copy equal to the Source, independent of the protocol.

pub(crate) mod alternates;
pub(crate) mod bodies;
pub(crate) mod changes;
pub(crate) mod comparison;
pub(crate) mod copy_check;
pub(crate) mod damage;
pub(crate) mod deprecation;
pub(crate) mod history;
pub(crate) mod judge;
pub(crate) mod left;
pub(crate) mod listed;
pub(crate) mod manifest;
mod open;
pub(crate) mod patch_format;
mod patches;
pub(crate) mod planner;
pub(crate) mod select;
pub(crate) mod skolem;
pub(crate) mod volume;
