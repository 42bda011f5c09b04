//! HTTP: what a Source answers.
#![doc = include_str!("../README.md")]

mod body;
mod conditional;
mod range;
mod respond;
mod route;
mod routes;
mod run;
mod site;
mod stream;

pub use run::{Server, ServerError, ServerOptions};
pub use site::{ServedSet, Site, resourcesync_link};
