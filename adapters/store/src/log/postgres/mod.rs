//! The change log on PostgreSQL: any number of nodes record in it.

pub(crate) mod last_heads;
pub(crate) mod load;
pub(crate) mod log;
pub(crate) mod needed;
pub(crate) mod newest_versions;
pub(crate) mod open;
pub(crate) mod parts;
pub(crate) mod removal;
pub(crate) mod rows;
pub(crate) mod tables;
pub(crate) mod texts;
pub(crate) mod version_tables;
pub(crate) mod watch;
pub(crate) mod writer;
