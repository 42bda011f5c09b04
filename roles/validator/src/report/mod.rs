//! Rules, findings, and the report of them, independent of protocols.

pub(crate) mod document;
pub(crate) mod facts;
pub(crate) mod finding;
pub(crate) mod options;
pub(crate) mod render;
pub(crate) mod rule;
pub mod rules;
