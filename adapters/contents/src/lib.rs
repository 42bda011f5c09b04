//! A content-addressed folder: bytes are stored under their digest.
#![doc = include_str!("../README.md")]

mod content;
mod contents;
mod digest;
mod error;
mod layout;
mod packed;
mod view;

pub use abreast_core::contents::{Error, ErrorKind, PinnedContent, address_of};
pub use contents::Contents;
pub use digest::digest;
pub use packed::Limits;
pub use view::{Condition, View};
