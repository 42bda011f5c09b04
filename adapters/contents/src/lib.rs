//! Bytes kept by what they are: a content-addressed folder.
#![doc = include_str!("../README.md")]

mod contents;
mod error;
mod layout;
mod look;
mod pins;

pub use contents::Contents;
pub use error::{Error, ErrorKind};
pub use look::{digest, path_of, visit_all};
pub use pins::Kept;
