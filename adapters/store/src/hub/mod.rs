//! The durable data of a hub, in one SQLite file: [`SqliteHub`] is a
//! [`HubStore`](abreast_core::hub::HubStore).

mod recorder;
pub(crate) mod store;
pub(crate) mod summary;
pub(crate) mod targets;
pub(crate) mod topic_states;
pub(crate) mod topics;
mod transaction;
pub(crate) mod verifications;

pub(crate) use store::MIGRATIONS;
pub use store::SqliteHub;
