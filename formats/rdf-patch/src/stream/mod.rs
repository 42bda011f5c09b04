//! Reading and writing patches row by row.

pub(crate) mod read_error;
pub(crate) mod reader;
pub(crate) mod writer;
