//! Stores: the change log and the Destination's state on SQLite.
#![doc = include_str!("../README.md")]

mod database;
pub mod hub;
mod log;
mod maintenance;
pub mod mirror;
#[cfg(feature = "postgres")]
mod postgres;

#[cfg(feature = "postgres")]
pub use log::postgres::log::PostgresLog;
pub use log::sqlite::log::{SqliteLog, SqliteOptions};
pub use maintenance::drop_set::{DroppedSet, DroppedTopics, drop_set, drop_topics};
pub use maintenance::former_sets::{
    FORMER_SETS_MAX, FormerSet, NowAt, Removal, RenamedSet, former_sets, rename_set, rename_topics,
};
#[cfg(feature = "postgres")]
pub use maintenance::migrate;
pub use maintenance::needed_contents::NeededContents;
pub use maintenance::shared_sets::SharedSets;
pub use maintenance::{backup, integrity, repair, summary};
pub use mirror::labels;
#[cfg(feature = "postgres")]
pub use postgres::{
    database::PostgresDatabase,
    leases::PostgresLeases,
    options::PostgresOptions,
    password::{has_password, password_in_file},
    problem::{DatabaseError, DatabaseProblem},
    records::PostgresRecords,
    running_nodes::RunningNode,
    url::{UrlFault, check_url},
};

/// Version of the SQLite library that is linked into the program.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
