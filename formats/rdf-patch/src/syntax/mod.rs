//! Rows, headers and terms.

pub(crate) mod header;
pub(crate) mod row;
pub(crate) mod row_parser;
pub(crate) mod term_parser;
