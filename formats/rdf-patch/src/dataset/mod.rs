//! Whole patches: applying patches, and chains of patches.

pub(crate) mod apply;
pub(crate) mod chain;
#[doc(hidden)]
pub mod fuzz_property;
pub(crate) mod patch;
