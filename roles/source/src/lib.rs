//! The Source role: publishes the changes of a folder as documents of the specifications.
#![doc = include_str!("../README.md")]

mod aliases;
mod appends;
pub mod archive;
mod aside;
mod at_most;
mod copies;
pub mod deposit;
pub mod entities;
mod events;
mod guard;
mod hash;
mod ingest;
mod interval;
pub mod links;
mod names;
pub mod notify;
pub mod origin;
mod path_state;
mod pending;
mod private;
pub mod projection;
pub mod publish;
mod representations;
mod rest;
mod scan;
mod set_state;
pub mod static_site;
mod status;
mod unsure;
pub mod versions;
pub mod watch;
mod watching;
mod writes;

/// Properties of any input: for fuzzing and for the tests of its seeds.
#[doc(hidden)]
pub mod fuzz_property {
    pub use crate::links::fuzz_property::check as links;
}

pub use projection::resourcesync::dumps as dump;

pub use at_most::AtMost;
pub use copies::Copies;
pub use guard::{Deletions, Held};
pub use hash::{DigestPolicy, media_type_of};
pub use ingest::{IngestOptions, IngestReport};
pub use names::{Naming, check_filter, is_published_name, open_folder};
pub use private::{Private, store_in};
pub use representations::{OpenKept, Representation, Representations};
pub use rest::Rest;
pub use scan::{ScanError, ScanOptions, ScanReport, scan};
pub use set_state::SetState;
pub use status::{WatchState, WatchStatus};
pub use writes::Writes;
