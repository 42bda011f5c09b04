//! Stores: the change log and the Destination's state on SQLite, and in memory.
#![doc = include_str!("../README.md")]

mod apply;
pub mod backup;
mod commit_signal;
mod connection;
mod database;
mod descriptions;
mod drop_set;
pub mod hub;
pub mod integrity;
pub mod labels;
mod limits;
mod links;
mod load;
mod memory_log;
mod memory_tables;
mod memory_topics;
mod migration;
pub mod mirror;
mod needed_contents;
mod presence;
mod queue;
mod read_only;
mod readers;
mod recorder;
pub mod repair;
mod rows;
mod schema_text;
mod set_rows;
mod set_state;
mod shards;
mod sqlite_log;
mod sum;
mod tables;
mod version_state;
mod version_tables;
mod versions;
mod work;
mod writer;

pub use drop_set::{DroppedSet, DroppedTopics, drop_set, drop_topics};
pub use memory_log::MemoryLog;
pub use memory_topics::MemoryTopics;
pub use needed_contents::NeededContents;
pub use sqlite_log::{SqliteLog, SqliteOptions};

/// Version of the SQLite library that is linked into the program.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
