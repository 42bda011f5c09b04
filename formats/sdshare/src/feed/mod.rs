//! Feeds and entries, their relations and times.

pub(crate) mod finding;
pub(crate) mod model;
pub(crate) mod relation;
pub(crate) mod since;
pub(crate) mod time;
