//! Plain Sitemaps: only elements that every crawler knows, without ResourceSync.

pub use crate::v1_1::{Entry, Root, write_end, write_plain_entry, write_plain_head};
