//! The HTTP server of a Source: documents, resources, API and hub.
#![doc = include_str!("../README.md")]

pub mod api;
mod body;
mod client;
mod conditional;
#[doc(hidden)]
pub mod fuzz_property;
mod heads;
mod lines;
mod memory;
mod negotiate;
mod places;
mod prefix;
mod present;
mod range;
mod respond;
mod route;
mod routes;
mod run;
mod site;
mod stream;

pub use client::TrustedProxies;
pub use memory::Memory;
pub use run::{Server, ServerError, ServerOptions};
pub use site::{ServedSet, ServedSets, SetLink, Site, SiteHub, set_link};
