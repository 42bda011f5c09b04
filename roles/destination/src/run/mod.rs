//! Runs: a single run, repeated runs, and the read-only commands on a copy.

pub(crate) mod audit;
pub mod check;
pub(crate) mod follow;
pub(crate) mod moved;
mod parts;
mod settle;
#[cfg(test)]
mod simulation;
pub(crate) mod sync;
