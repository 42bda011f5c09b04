//! Every rule finds what breaks it, and nothing in a Source that follows all of them.
#![allow(clippy::unwrap_used)]

mod cases;
mod document;
mod emm;
mod emm_cases;
mod emm_shapes;
mod every_kind;
mod musts;
mod musts_emm_0_1;
mod musts_emm_1_0;
mod musts_feeds;
mod musts_iiif;
mod mutants;
mod notification;
mod resourcesync_0_1;
mod sdshare;
mod server;
mod site;
mod whole;
