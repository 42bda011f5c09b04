//! RDF as sorted statements in files.
#![doc = include_str!("../README.md")]

mod compressed;
mod description;
mod error;
mod input;
mod order;
mod parts;
mod read_ahead;
mod skolem;
mod sort;
mod sorted;

pub use compressed::unpacked;
pub use description::Describer;
pub use error::Error;
pub use input::{Bytes, GraphFilter, Input, SortOptions, sorted, syntax_of_file};
pub use order::{LineOrder, compare};
pub use parts::with_parts;
pub use skolem::skolemized;
pub use sort::LineSorter;
pub use sorted::{BlankNodes, Group, Groups, MAX_GROUP, SortedStatements};
