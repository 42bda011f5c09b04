//! Runs: one, or one after the other, and what only looks at a copy.

pub(crate) mod audit;
pub mod check;
pub(crate) mod follow;
pub(crate) mod moved;
mod parts;
mod settle;
#[cfg(test)]
mod simulation;
pub(crate) mod sync;
