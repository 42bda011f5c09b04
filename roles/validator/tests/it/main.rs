//! Every rule finds what breaks it, and nothing in a Source that follows all of them.
#![allow(clippy::unwrap_used)]

mod cases;
mod document;
mod emm;
mod emm_cases;
mod emm_shapes;
mod musts;
mod mutants;
mod notification;
mod resourcesync_0_1;
mod sdshare;
mod server;
mod site;
mod whole;
