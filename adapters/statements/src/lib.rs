//! RDF as sorted statements in files.
#![doc = include_str!("../README.md")]

mod input;
mod nodes;
mod sort;

pub use input::compressed::unpacked;
pub use input::inputs::{Bytes, GraphFilter, Input, SortOptions, sorted, syntax_of_file};
pub use nodes::description::Describer;
pub use nodes::parts::with_parts;
pub use nodes::skolem::skolemized;
pub use sort::error::Error;
pub use sort::lines::LineSorter;
pub use sort::order::{LineOrder, compare};
pub use sort::sorted::{BlankNodes, Group, Groups, MAX_GROUP, SortedStatements};
