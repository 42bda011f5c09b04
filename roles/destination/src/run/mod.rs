//! Runs: a single run, repeated runs, and the read-only commands on a copy.

pub(crate) mod audit;
pub mod check;
mod command;
pub(crate) mod follow;
mod hand_over;
pub(crate) mod moved;
mod parts;
pub(crate) mod sets;
mod settle;
#[cfg(test)]
mod simulation;
pub(crate) mod sync;
