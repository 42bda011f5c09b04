//! RDF Patch: changes to an RDF dataset as rows of text.
#![doc = include_str!("../README.md")]

mod dataset;
mod stream;
mod syntax;

pub use dataset::apply::{QuadSet, apply, between};
pub use dataset::chain::{Chain, ChainError};
#[doc(hidden)]
pub use dataset::fuzz_property;
pub use dataset::patch::{CannotReverse, Patch};
pub use stream::read_error::{Finding, ReadError};
pub use stream::reader::{MAX_FINDINGS, ReadLimits, ReadOptions, Reader};
pub use stream::writer::{WriteError, Writer};
pub use syntax::header::{
    AFTER, BEFORE, ENTITY_PREV, Header, ID, PREV, SKOLEM, parse_uuid, uuid_iri,
};
pub use syntax::row::{Change, Row};

/// The media type of RDF Patch as text.
pub const MEDIA_TYPE: &str = "application/rdf-patch";
/// The other media type of RDF Patch as text.
pub const MEDIA_TYPE_TEXT: &str = "text/rdf-patch";
/// The media type of RDF Patch in RDF Thrift, which this crate does not read.
pub const MEDIA_TYPE_BINARY: &str = "application/rdf-patch+thrift";
/// The extension of files of RDF Patch, without the dot.
pub const FILE_EXTENSION: &str = "rdfp";
