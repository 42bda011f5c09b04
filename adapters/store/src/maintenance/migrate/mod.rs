//! Moving all rows of a store between a folder and a PostgreSQL database.
//!
//! Rows are copied in parts, and the place of the last row is recorded in the transaction of the
//! part, so that an interrupted migration continues after it. Positions, times, pages and shards do
//! not change, so copies that follow notice nothing.

mod compare;
mod options;
mod postgres;
mod run;
mod side;
mod sqlite;
mod state;
mod sums;
mod table;
mod tables;
mod value;

pub use options::{
    MigratedSet, MigratedStore, MigratedTable, MigrationOptions, Verified, is_unfinished,
    migrated_from,
};
pub use run::{Migration, complete_folder, identity_of};
