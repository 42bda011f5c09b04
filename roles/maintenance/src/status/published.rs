//! The state of copies for the public, in a folder: as JSON, as RDF and as a page.
//!
//! It has no paths, no processes and no texts of problems, which may name either or contain a secret.

mod copies;
mod files;
mod page;
mod turtle;

pub use copies::{PublishedCopy, PublishedStatus, STALLED_AFTER};
pub use files::replace_file;
