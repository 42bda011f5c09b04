//! Reports on stores, copies and hubs, with the conditions that an operator has to know.
//!
//! A program that has a store or copy open makes the report by itself. For all others, [`status`] reads
//! their databases, without a lock and without changes.

mod copy;
mod published;
mod report;
mod store;

pub use copy::copy_status;
pub use published::{PublishedCopy, PublishedStatus, STALLED_AFTER, replace_file};
pub use report::{
    Attention, AuditStatus, CopyRun, CopyStatus, DiskUse, DumpUse, FailingTarget, FollowerStatus,
    HubStatus, ProblemStatus, STATUS_VERSION, SetStatus, StatusReport, StoreStatus, TopicStatus,
};
pub use store::{free_bytes, hub_status, store_status};

use crate::place::{Result, StateFolders};

/// Reads the databases of the stores and copies of a folder, and adds them to a report.
///
/// # Errors
/// Something in the folder cannot be read.
pub fn status(folders: &StateFolders, report: &mut StatusReport) -> Result<()> {
    if folders.store.is_some() || folders.hub.is_some() {
        report.stores.push(store_status(folders)?);
    }
    if let Some(place) = &folders.copy {
        report.copies.push(copy_status(place)?);
    }
    Ok(())
}
