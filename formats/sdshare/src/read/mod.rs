//! Reading feeds, with findings.

pub(crate) mod check;
pub(crate) mod document;
pub(crate) mod parser;
pub(crate) mod reader;
pub(crate) mod shape;
