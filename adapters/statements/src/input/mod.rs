//! Inputs in any syntax.

pub(crate) mod compressed;
pub(crate) mod inputs;
