//! A content-addressed folder: bytes are stored under their digest.
#![doc = include_str!("../README.md")]

mod content;
mod contents;
mod digest;
mod error;
mod layout;
mod packed;
mod pins;
mod view;

pub use content::Content;
pub use contents::Contents;
pub use digest::{address_of, digest};
pub use error::{Error, ErrorKind};
pub use packed::Limits;
pub use pins::PinnedContent;
pub use view::{Condition, View};
