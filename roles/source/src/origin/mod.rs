//! Where the resources of a set come from, apart from a watched folder and the API.

pub(crate) mod at_most;
pub mod rdf;
pub mod sparql;
