//! The real binary on loopback: a Source, a Destination, and folders compared at the end.
#![expect(clippy::unwrap_used, reason = "tests end at the first surprise")]

mod aggregate;
mod api;
mod backup_folders;
mod backup_places;
mod build;
mod callbacks;
mod causes;
mod choices;
mod codes;
mod config;
mod connections;
mod crash;
mod damaged_contents;
mod dumps;
mod failures;
mod faults;
mod feeds;
mod feeds_interop;
mod flipped_bits;
mod follow;
#[cfg(feature = "xmpp")]
mod four_copies;
mod from_dumps;
mod full_disk;
mod hostile_text;
mod hub_interop;
mod hub_kills;
mod import_packed;
mod interop;
mod jobs;
mod json_lines;
mod logins;
mod maintenance;
mod many;
mod memory;
mod old_backups;
#[cfg(feature = "oxigraph")]
mod oxigraph;
mod packed;
mod printed;
mod private;
mod published_0_1;
mod push;
mod rdf;
mod rdf_input;
mod reading;
mod real;
mod real_rdf;
mod same_words;
mod sdshare_server;
mod selection;
mod service;
mod session;
mod sets;
mod static_feeds;
mod status;
mod stores;
mod topic_host;
mod triples;
mod validate;
mod versions;
mod world;
#[cfg(feature = "xmpp")]
mod xmpp;
