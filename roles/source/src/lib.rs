//! The Source role: publishes the changes of a folder as documents of the specifications.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod links;
mod made;
mod names;
pub mod notify;
pub mod origin;
pub mod projection;
pub mod publish;
mod scan;
pub mod static_site;
pub mod versions;

/// Properties of any input: for fuzzing and for the tests of its seeds.
#[doc(hidden)]
pub mod fuzz_property {
    pub use crate::links::fuzz_property::check as links;
}

pub use projection::entities;
pub use projection::resourcesync::{archive, dumps as dump};

pub use made::shared::{
    SharedFiles, SharedOptions, SharedSet, remove_made_files, rename_made_files,
};
pub use names::copies::Copies;
pub use names::keys::is_published_name;
pub use names::media_type::media_type_of;
pub use names::naming::Naming;
pub use names::opened::{check_filter, open_folder};
pub use names::private::{Private, store_in};
pub use origin::at_most::AtMost;
pub use publish::representations::{OpenKept, Representation, Representations};
pub use publish::set_state::SetState;
pub use scan::full::{ScanError, ScanOptions, ScanReport, scan};
pub use scan::guard::{Deletions, Held};
pub use scan::ingest::IngestReport;
pub use scan::options::{DigestPolicy, IngestOptions};
pub use scan::rest::Rest;
pub use scan::status::{WatchState, WatchStatus};
pub use scan::watch_note::WatchNote;
pub use scan::writes::Writes;
pub use scan::{deposit, watch};
