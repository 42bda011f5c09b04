//! A database of SQLite: opening and locking it, its schema, its writer, its readers and its checksums.
//! Nothing here knows a table of the product.

pub(crate) mod connection;
pub(crate) mod locked;
pub(crate) mod migration;
pub(crate) mod open;
pub(crate) mod presence;
pub(crate) mod queue;
pub(crate) mod read_only;
pub(crate) mod readers;
pub(crate) mod sum;
pub(crate) mod writer;
