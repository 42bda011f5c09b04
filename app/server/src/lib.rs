//! HTTP: what a Source answers.
#![doc = include_str!("../README.md")]

mod any_input;
pub mod api;
mod body;
mod conditional;
mod heads;
mod lines;
mod range;
mod respond;
mod route;
mod routes;
mod run;
mod site;
mod stream;

#[doc(hidden)]
pub use any_input::{check_any_batch, check_any_import, check_any_request};
pub use run::{Server, ServerError, ServerOptions};
pub use site::{ServedSet, Site, SiteHub, resourcesync_link};
