//! Reading RDF in every syntax.

pub(crate) mod any;
pub(crate) mod contexts;
pub(crate) mod error;
pub(crate) mod input;
pub(crate) mod json_ld;
pub(crate) mod json_ld_base;
pub(crate) mod json_ld_dropped;
pub(crate) mod json_memory;
pub(crate) mod language_tags;
pub(crate) mod left_out;
pub(crate) mod lines;
pub(crate) mod nesting;
pub(crate) mod options;
pub(crate) mod rdf_xml;
pub(crate) mod term_chains;
pub(crate) mod terse;
