//! Destination: discovers a Source, copies its resources and follows its changes.
#![doc = include_str!("../README.md")]

mod admit;
mod alternates;
mod audit;
mod bodies;
pub mod check;
mod clock;
mod common_base;
mod damage;
mod deprecation;
mod diagnostics;
mod error;
mod events;
mod follow;
mod freshness;
mod history;
mod lasting;
mod limits;
mod marker;
mod moved;
mod options;
mod origins;
mod package;
mod partial;
mod path_map;
mod place;
mod plan;
mod probe;
mod provisional;
mod published;
mod push;
mod rdf_rules;
mod read;
mod reporter;
mod requests;
mod robots;
mod run;
mod select;
mod settle;
mod sink;
mod skolem;
mod state;
mod state_folder;
mod transaction;
mod transfer;
mod uri_list;
mod verify;

pub(crate) use abreast_core::filter;
pub use audit::{AuditReport, audit};
pub use deprecation::REPLACED_BY;
pub use error::{Error, ExitCode};
pub use events::{
    Event, Filtered, Item, ItemAction, Mode, Observer, Problem, Silent, Status, Summary,
    without_help,
};
pub use filter::Filter;
pub use follow::follow;
#[cfg(feature = "xmpp")]
pub use options::XmppOptions;
pub use options::{AuditOptions, CallbackOptions, Dumps, MaxDelete, Push, SyncOptions};
pub use path_map::{
    BaseError, Form, MAX_PATH_BYTES, NameRules, PathError, PathMap, STATE_FOLDER, common_directory,
};
pub use provisional::NewFolders;
pub use published::{published_above, resolved};
pub use read::{NotificationContent, NotifiedChange, PushOffer, TopicKind, TopicStep};
pub use read::{SourceSet, Tolerance, check_url, name_of as set_name, source_sets};
#[doc(hidden)]
pub use robots::matcher as robots_matcher;
pub use run::{sync, test_filter};
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
pub use state::{SETS_RECORD, check_places, lock};
pub use uri_list::UriList;

/// What holds for any input: for fuzzing and for the tests of its seeds.
#[doc(hidden)]
pub mod fuzz_property {
    pub use crate::freshness::fuzz_property::check as freshness;
    pub use crate::path_map::fuzz_property::check as uri_to_path;
    pub use crate::read::fuzz_property::{discovery, package};
    pub use crate::robots::fuzz_property::check as robots;
    pub use crate::transfer::fetch::patch::fuzz_property::check as patch;
}
