//! The durable data of a hub: in one SQLite file ([`SqliteHub`]), or for several nodes in a PostgreSQL
//! database. Both are a [`HubStore`](abreast_core::hub::HubStore).

pub(crate) mod numbers;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
mod recorder;
pub(crate) mod store;
pub(crate) mod summary;
pub(crate) mod targets;
pub(crate) mod topic_states;
pub(crate) mod topics;
mod transaction;
pub(crate) mod verifications;

#[cfg(feature = "postgres")]
pub use postgres::{DatabaseInspection, LeaseInspection, NodeInspection, NodeOptions, PostgresHub};
pub(crate) use store::MIGRATIONS;
pub use store::SqliteHub;
