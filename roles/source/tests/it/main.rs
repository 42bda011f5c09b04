//! The Source against real folders and a real store.
#![expect(clippy::unwrap_used, reason = "tests end at the first surprise")]

mod about;
mod archive;
mod dumps;
mod follow_links;
mod notify;
mod publish;
mod scan;
mod static_site;
mod versions;
mod watch;
mod world;
