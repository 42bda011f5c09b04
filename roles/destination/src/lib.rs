//! Destination: discovers a Source, copies its resources and follows its changes.
#![doc = include_str!("../README.md")]

mod copy;
mod plan;
mod push;
mod read;
mod report;
mod request;
mod run;
mod sink;
mod transfer;

pub use abreast_core::filter::Filter;
pub use copy::path_map::{
    BaseError, Form, MAX_PATH_BYTES, NameRules, PathError, PathMap, STATE_FOLDER, common_directory,
};
pub use copy::provisional::NewFolders;
pub use copy::published::{published_above, resolved};
pub use copy::state::{SETS_RECORD, check_places, lock};
pub use plan::deprecation::REPLACED_BY;
pub use read::{NotificationContent, NotifiedChange, PushOffer, TopicKind, TopicStep};
pub use read::{SourceSet, Tolerance, check_url, name_of as set_name, source_sets};
pub use report::error::{Error, ExitCode};
pub use report::events::{
    Event, Filtered, Item, ItemAction, Mode, Observer, Problem, Silent, Status, Summary,
    without_help,
};
#[cfg(feature = "xmpp")]
pub use report::options::XmppOptions;
pub use report::options::{AuditOptions, CallbackOptions, Dumps, MaxDelete, Push, SyncOptions};
pub use report::uri_list::UriList;
#[doc(hidden)]
pub use request::robots::matcher as robots_matcher;
pub use run::audit::{AuditReport, audit};
pub use run::check;
pub use run::follow::follow;
pub use run::sync::{sync, test_filter};
pub use sink::lines::{LinesOptions, Output};
#[cfg(feature = "s3")]
pub use sink::objects::ObjectsOptions;
pub use sink::options::SinkOptions;
pub use sink::rdf::Graph;
pub use sink::rdf::label_table::LabelsOptions;
pub use sink::rdf::nquads::NQuadsOptions;
pub use sink::rdf::remote::{
    GraphStoreOptions, OpenStore, OxigraphOptions, PushOptions, SparqlOptions,
};
pub use sink::warc::WarcOptions;

/// What holds for any input: for fuzzing and for the tests of its seeds.
#[doc(hidden)]
pub mod fuzz_property {
    pub use crate::copy::path_map::fuzz_property::check as uri_to_path;
    pub use crate::read::fuzz_property::{discovery, package};
    pub use crate::request::freshness::fuzz_property::check as freshness;
    pub use crate::request::robots::fuzz_property::check as robots;
    pub use crate::transfer::fetch::patch::fuzz_property::check as patch;
}
