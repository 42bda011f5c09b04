//! Writing feeds.

pub(crate) mod writer;
