//! From a folder to its change log: files are found by a scan or by events, read when they are complete, and recorded.

pub(crate) mod appends;
mod aside;
pub mod deposit;
mod events;
pub(crate) mod full;
pub(crate) mod guard;
pub(crate) mod hash;
pub(crate) mod ingest;
mod large;
pub(crate) mod options;
pub(crate) mod pending;
pub(crate) mod rest;
pub(crate) mod status;
mod unsure;
pub mod watch;
mod watch_options;
mod watching;
pub(crate) mod writes;
