//! RDF: syntaxes, descriptions of entities, canonical N-Triples and their differences.
#![doc = include_str!("../README.md")]

mod accept;
mod contexts;
mod json_ld;
mod lines;
mod nesting;
mod rdf_xml;
mod read;
mod read_error;
mod syntax;
mod term_chains;
mod terse;
mod write;

pub use accept::choose;
pub use contexts::Contexts;
pub use read::{ReadLimits, ReadOptions, Visit, read};
pub use read_error::ReadError;
pub use syntax::{FileSyntax, Syntax};
pub use write::{
    CannotWrite, InvalidPrefix, Prefixes, WriteError, WriteOptions, Writer, can_write, write,
};
