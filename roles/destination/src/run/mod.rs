//! Runs: one, or one after the other, and what only looks at a copy.

pub(crate) mod audit;
pub mod check;
pub(crate) mod follow;
pub(crate) mod moved;
mod settle;
pub(crate) mod sync;
