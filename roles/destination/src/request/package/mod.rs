//! Packages as they are listed, downloaded and opened: many resources in one ZIP or WARC file [rs-core §11, §13].
//!
//! | file | subject |
//! |---|---|
//! | `listing.rs` | packages and dumps as a Source lists them |
//! | `download.rs` | fetching a package, whole and verified |
//! | `background.rs` | digesting a package while it is received |
//! | `archive.rs` | the members of a ZIP file |
//! | `records.rs` | the records of a WARC file, as members |
//! | `buckets.rs` | finding a hash among many |

pub(crate) mod archive;
mod background;
pub(crate) mod buckets;
pub(crate) mod download;
pub(crate) mod listing;
mod record_kind;
mod records;
