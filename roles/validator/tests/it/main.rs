//! Does every rule find what breaks it, and nothing in a Source that keeps to all of them?
#![allow(clippy::unwrap_used)]

mod cases;
mod document;
mod notification;
mod server;
mod site;
mod whole;
