//! ResourceSync 1.1: the only place of this crate that knows its documents.

pub(crate) mod listed;
