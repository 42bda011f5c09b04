//! The model and its rules; no disk, no network, no runtime.
#![doc = include_str!("../README.md")]

pub mod batch;
mod clock;
mod content;
pub mod filter;
mod finding;
mod limits;
mod log;
mod resource;
#[cfg(feature = "testing")]
pub mod testing;
mod topic;
mod version;

pub use clock::{Clock, FixedClock, SystemClock};
pub use content::{ContentId, ParseContentIdError};
pub use finding::{Finding, Severity};
pub use limits::{
    DESCRIPTION_BYTES_MAX, KEY_BYTES_MAX, REPLACEMENT_BYTES_MAX, check_change, check_key,
    check_state, check_witness, shown,
};
pub use log::{
    AppendDone, Appended, Beginning, ChangeLog, ErrorKind, Head, Imported, KeyRange, LogError,
    NewSet, Page, PageRule, Shard, ShardId, ShardRule, Visit, Witnessed, append, next_time,
};
pub use resource::{
    Action, Change, ChangeRecord, Description, Kind, Position, Resource, ResourceSet, SetId, State,
};
pub use topic::{
    NewNotification, Notification, Offset, PUBLISH_PATIENCE, Payload, PublishDone, TopicId,
    TopicLog, publish,
};
pub use version::{Collected, Order, Version, VersionPolicy};

/// What holds for any input: for fuzzing and for the tests of its seeds.
#[doc(hidden)]
pub mod fuzz_property {
    pub use crate::filter::fuzz_property::check as filter;
}
