//! What a server on a real socket answers, to honest clients and to others.
#![expect(clippy::unwrap_used, reason = "tests end at the first surprise")]

mod api;
mod api_hostile;
mod browsers;
mod callbacks;
#[path = "../../../../roles/source/tests/it/csv.rs"]
mod csv;
mod documents;
mod dumps;
mod emm;
mod files;
mod health;
mod http2;
mod limits;
mod push;
mod push_admin;
mod ranges;
mod remote_contents;
mod requests;
mod resourcesync_0_1;
mod sdshare;
mod stop;
mod targets;
mod versions;
mod world;
