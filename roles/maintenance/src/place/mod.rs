//! Folders of stores and copies: where they are, who uses them, and how much of their data is read.

mod database;
pub(crate) mod error;
mod hold;
mod lock_holder;
mod read_share;
mod state_folders;
mod store_record;
pub mod there;

pub use database::{DatabaseCheck, DatabaseStatus, LeaseStatus, NodeStatus, TablesStatus};
pub use error::{Error, ErrorKind};
pub use hold::{hold, refuse_held};
pub use lock_holder::holder_of;
pub use read_share::ReadShare;
pub use state_folders::{Place, StateFolders};
pub use store_record::StoreRecord;

pub(crate) use error::{Context, Result};
pub(crate) use hold::in_use;
pub(crate) use state_folders::HUB_DATABASE;
