//! Requests of a run: admitted hosts, times and limits, and verification of the responses.

pub(crate) mod admit;
pub(crate) mod diagnostics;
pub(crate) mod freshness;
pub(crate) mod limits;
pub(crate) mod moves;
pub(crate) mod origins;
pub(crate) mod package;
pub(crate) mod pieces;
pub(crate) mod requests;
pub(crate) mod robots;
pub(crate) mod spool;
pub(crate) mod stop;
pub(crate) mod verify;
