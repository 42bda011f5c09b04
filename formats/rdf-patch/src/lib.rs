//! RDF Patch: changes to an RDF dataset as rows of text.
#![doc = include_str!("../README.md")]

mod apply;
mod chain;
mod header;
mod patch;
mod read_error;
mod reader;
mod row;
mod row_parser;
mod term_parser;
mod writer;

pub use apply::{QuadSet, apply, between};
pub use chain::{Chain, ChainError};
pub use header::{AFTER, BEFORE, ENTITY_PREV, Header, ID, PREV, SKOLEM, parse_uuid, uuid_iri};
pub use patch::{CannotReverse, Patch};
pub use read_error::{Finding, ReadError};
pub use reader::{MAX_FINDINGS, ReadLimits, ReadOptions, Reader};
pub use row::{Change, Row};
pub use writer::{WriteError, Writer};

/// The media type of RDF Patch as text.
pub const MEDIA_TYPE: &str = "application/rdf-patch";
/// The other media type of RDF Patch as text.
pub const MEDIA_TYPE_TEXT: &str = "text/rdf-patch";
/// The media type of RDF Patch in RDF Thrift, which this crate does not read.
pub const MEDIA_TYPE_BINARY: &str = "application/rdf-patch+thrift";
/// The extension of files of RDF Patch, without the dot.
pub const FILE_EXTENSION: &str = "rdfp";

/// Properties that hold for any bytes, for fuzzing.
#[doc(hidden)]
pub mod fuzz_property;
