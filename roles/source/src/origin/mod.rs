//! Where the resources of a set come from, apart from a watched folder and the API.

pub mod rdf;
pub mod sparql;
