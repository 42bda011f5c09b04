//! Patches as a whole: applying them, and chains of them.

pub(crate) mod apply;
pub(crate) mod chain;
#[doc(hidden)]
pub mod fuzz_property;
pub(crate) mod patch;
