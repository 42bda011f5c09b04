//! Stores: the change log and the Destination's state on SQLite, and in memory.

mod connection;
mod migration;
