//! Further origins of a set's resources, in addition to a watched folder and the API.

pub(crate) mod at_most;
pub mod rdf;
pub mod sparql;
