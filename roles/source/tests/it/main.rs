//! Tests of the Source with real folders and a real store.
#![expect(clippy::unwrap_used, reason = "tests end at the first surprise")]

mod about;
mod archive;
mod csv;
mod deletions;
mod deposit;
mod deprecation;
mod dumps;
mod emm;
mod follow_links;
mod large;
mod nodes;
mod notify;
mod pages;
mod projection;
mod publish;
mod rdf;
mod rendering;
mod resourcesync_0_1;
mod restarted;
mod restless;
mod scan;
mod sdshare;
mod sdshare_entities;
mod shared_archives;
mod shared_dumps;
mod shared_snapshots;
mod sparql;
mod static_feeds;
mod static_site;
mod versions;
mod watch;
mod world;
