//! Conversion of a folder to its change log: scans and events find files, which are read when
//! complete, and recorded.

pub(crate) mod appends;
mod aside;
pub mod deposit;
mod events;
pub(crate) mod full;
pub(crate) mod guard;
pub(crate) mod hash;
pub(crate) mod ingest;
mod large;
pub(crate) mod leased;
pub(crate) mod options;
pub(crate) mod pending;
pub(crate) mod rest;
pub(crate) mod status;
mod unsure;
pub mod watch;
pub(crate) mod watch_note;
mod watch_options;
mod watch_state;
mod watching;
pub(crate) mod writes;
