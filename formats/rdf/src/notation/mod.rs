//! Statements of N-Triples, and the syntaxes with their media types.

pub(crate) mod accept;
pub(crate) mod statement;
pub(crate) mod syntax;
