//! The change log of a Source: decisions about batches and versions, and the log on SQLite.

pub(crate) mod apply;
pub(crate) mod commit_signal;
pub(crate) mod descriptions;
pub(crate) mod limits;
pub(crate) mod links;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod set_rows;
pub(crate) mod set_state;
pub(crate) mod shards;
pub(crate) mod sqlite;
pub(crate) mod tables;
pub(crate) mod version_state;
pub(crate) mod versions;
pub(crate) mod work;
