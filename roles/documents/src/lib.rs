#![doc = include_str!("../README.md")]

mod model;
mod protocol;
mod walk;

pub use model::error::Error;
pub use model::item::{Entry, Head, Item, Link, Statement};
pub use protocol::resourcesync::ListWriter;
pub use walk::run::{Limits, Place, Reading, Visit, read};
