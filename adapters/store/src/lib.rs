//! Stores: the change log and the Destination's state on SQLite, and in memory.
#![doc = include_str!("../README.md")]

mod apply;
mod book;
mod connection;
mod limits;
mod links;
mod load;
mod memory_log;
mod memory_tables;
mod migration;
pub mod mirror;
mod queue;
mod readers;
mod rows;
mod shards;
mod sqlite_log;
mod tables;
mod writer;

pub use memory_log::MemoryLog;
pub use sqlite_log::{SqliteLog, SqliteOptions};
