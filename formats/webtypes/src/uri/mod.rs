//! URIs: resolving and splitting them, links and their relations.

pub(crate) mod link_header;
pub(crate) mod reference;
pub mod relation;
pub(crate) mod segment;
