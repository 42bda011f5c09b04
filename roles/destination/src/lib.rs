//! Destination: discovers a Source, copies its resources and follows its changes.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod copy;
mod plan;
mod push;
mod read;
mod report;
mod request;
mod run;
mod sink;
mod transfer;

pub use crate::read::source_sets::source_sets;
pub use crate::report::error::without_help;
pub use abreast_core::filter::Filter;
pub use copy::last_audit::LastAudit;
pub use copy::path_map::{
    BaseError, Form, MAX_PATH_BYTES, NameRules, PathError, PathMap, STATE_FOLDER, common_directory,
};
pub use copy::published::{published_above, resolved};
pub use push::announcement::PushOffer;
pub use read::{NotificationContent, NotifiedChange, TopicKind, TopicStep};
pub use read::{SourceSet, check_url, name_of as set_name};
pub use report::audited::AuditReport;
pub use report::error::{Error, ExitCode};
pub use report::events::{
    Event, Filtered, Item, ItemAction, Mode, Observer, Problem, Silent, Status, Summary,
};
pub use report::heartbeat::Heartbeat;
pub use report::last_run::{LastRun, RunProblem};
pub use report::on_change::OnChange;
pub use report::open_files::{TooFewFiles, requests_of_copies};
pub use report::open_store::OpenStore;
pub use report::options::REPLACED_BY;
pub use report::options::Tolerance;
#[cfg(feature = "xmpp")]
pub use report::options::XmppOptions;
pub use report::options::{AuditOptions, CallbackOptions, Dumps, MaxDelete, Push, SyncOptions};
pub use report::sinks::Graph;
pub use report::sinks::GraphStoreOptions;
pub use report::sinks::LabelsOptions;
pub use report::sinks::LinesOptions;
pub use report::sinks::NQuadsOptions;
#[cfg(feature = "s3")]
pub use report::sinks::ObjectsOptions;
pub use report::sinks::Output;
pub use report::sinks::OxigraphOptions;
pub use report::sinks::PushOptions;
pub use report::sinks::SinkOptions;
pub use report::sinks::SparqlOptions;
pub use report::sinks::WarcOptions;
pub use report::uri_list::UriList;
#[doc(hidden)]
pub use request::robots::matcher as robots_matcher;
pub use run::audit::audit;
pub use run::check;
pub use run::follow::follow;
pub use run::sets::{
    SetObservers, SetsError, audit_sets, copies_of_sets, follow_sets, lock_sets, sync_sets,
    test_filter_sets,
};
pub use run::sync::{sync, test_filter};
pub use sink::target::{TargetError, TargetOptions};
pub use sink::targets::{TargetPlace, target_folder};

/// What holds for any input: for fuzzing and for the tests of its seeds.
#[doc(hidden)]
pub mod fuzz_property {
    pub use crate::copy::path_map::fuzz_property::check as uri_to_path;
    pub use crate::read::fuzz_property::{discovery, package};
    pub use crate::request::freshness::fuzz_property::check as freshness;
    pub use crate::request::robots::fuzz_property::check as robots;
    pub use crate::transfer::fetch::patch::fuzz_property::check as patch;
}
