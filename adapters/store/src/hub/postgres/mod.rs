//! The store of a hub on PostgreSQL, for several nodes.

mod changes;
mod inspection;
mod job;
mod letters;
mod loaded;
pub(crate) mod migrated;
mod namesakes;
mod node;
mod nodes;
mod open;
mod progress;
mod removal;
pub(crate) mod rows;
mod store;
mod summary;
mod targets;
mod topics;
mod transaction;
mod verifications;
mod writer;

pub use crate::postgres::leases::NodeOptions;
pub use inspection::{DatabaseInspection, LeaseInspection, NodeInspection};
pub use store::PostgresHub;
