//! Checks, repairs, copies and removals in the three kinds of databases.

pub mod backup;
pub(crate) mod drop_set;
pub(crate) mod former_sets;
pub mod integrity;
#[cfg(feature = "postgres")]
pub mod migrate;
pub(crate) mod needed_contents;
pub mod repair;
pub(crate) mod schema_text;
pub(crate) mod shared_sets;
pub mod summary;
