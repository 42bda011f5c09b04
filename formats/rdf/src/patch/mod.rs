//! Patches of entities, and chains of them.

pub(crate) mod chain;
pub(crate) mod entity_patch;
#[doc(hidden)]
pub mod fuzz_property;
