//! The change log on SQLite: one database file with one writer.

pub(crate) mod load;
pub(crate) mod log;
pub(crate) mod recorder;
pub(crate) mod row_sum;
pub(crate) mod rows;
pub(crate) mod tables;
pub(crate) mod version_tables;
