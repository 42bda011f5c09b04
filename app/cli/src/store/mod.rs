//! Opening a store, a log, a set or the states of copies.

pub(crate) mod all_sets;
pub(crate) mod bucket;
pub(crate) mod data_folder;
pub(crate) mod database;
#[cfg(feature = "postgres")]
mod database_password;
pub(crate) mod log_access;
#[cfg(feature = "postgres")]
pub(crate) mod migrated_contents;
#[cfg(feature = "postgres")]
pub(crate) mod migration;
#[cfg(feature = "postgres")]
pub(crate) mod migration_options;
pub(crate) mod open_set;
pub(crate) mod rdf_files;
pub(crate) mod served;
pub(crate) mod shared_sets;
pub(crate) mod state_folders;
pub(crate) mod stores;
pub(crate) mod unwritable_store;
