//! Plain Sitemaps: the elements that every crawler knows, and none of ResourceSync.

pub use crate::v1_1::{Entry, Root, write_end, write_plain_entry, write_plain_head};
