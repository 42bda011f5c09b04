//! Runs, one or one after the other, and comparisons of a copy without a run: audits and checks.

pub(crate) mod audit;
pub mod check;
pub(crate) mod follow;
pub(crate) mod moved;
mod parts;
mod settle;
#[cfg(test)]
mod simulation;
pub(crate) mod sync;
