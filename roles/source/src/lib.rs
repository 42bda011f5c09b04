//! The Source role: what changed in a folder, told in the specifications' documents.
#![doc = include_str!("../README.md")]

mod events;
mod found;
mod hash;
mod ingest;
mod md5_lanes;
mod names;
pub mod publish;
mod scan;
mod status;
pub mod watch;

pub use hash::{DigestPolicy, media_type_of};
pub use ingest::{IngestOptions, IngestReport};
pub use names::is_published_name;
pub use scan::{ScanError, ScanOptions, ScanReport, scan};
pub use status::{WatchState, WatchStatus};
