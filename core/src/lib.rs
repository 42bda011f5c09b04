//! The model and its rules; no disk, no network, no runtime.
#![doc = include_str!("../README.md")]

pub mod contents;
pub mod hub;
mod log;
mod resource;
#[cfg(feature = "testing")]
pub mod testing;
mod work;

pub use log::batch;
pub use log::clock::{Clock, FixedClock, SystemClock};
pub use log::finding::{Finding, Severity};
pub use log::lease::{Lease, Leases, WorkOnRequest};
pub use log::lease_notes::{HolderNote, NOTE_BYTES_MAX, REQUEST_BYTES_MAX, REQUESTS_MAX};
pub use log::limits::{
    DESCRIPTION_BYTES_MAX, KEY_BYTES_MAX, REPLACEMENT_BYTES_MAX, check_change, check_key,
    check_state, check_witness, shown,
};
pub use log::node_roles::{NodeRole, NodeRoles, NodeRolesError};
pub use log::records::{RECORD_BYTES_MAX, Record, Records};
pub use log::start::retry_at_start;
pub use log::topic::{
    NewNotification, Notification, Offset, PUBLISH_PATIENCE, Payload, PublishDone, TopicId,
    TopicLog, publish,
};
pub use log::{
    AppendDone, Appended, Beginning, ChangeLog, ErrorKind, Head, Imported, KeyRange, LogError,
    NewSet, Page, PageRule, Shard, ShardId, ShardRule, Visit, Witnessed, append, next_time,
};
pub use resource::content::{ContentId, ParseContentIdError};
pub use resource::filter;
pub use resource::version::{Collected, Order, Version, VersionPolicy};
pub use resource::{
    Action, Change, ChangeRecord, Description, Kind, Position, Resource, ResourceSet, SetId, State,
};
pub use work::meter::{Meter, MeterState, NamedItem, Retry};
pub use work::threads::{on_threads, spawn_scoped, start_scoped, start_thread};

/// What holds for any input: for fuzzing and for the tests of its seeds.
#[doc(hidden)]
pub mod fuzz_property {
    pub use crate::resource::filter::fuzz_property::check as filter;
}
