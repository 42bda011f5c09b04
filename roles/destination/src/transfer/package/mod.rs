//! Packages: many resources in one ZIP or WARC file, instead of a request for each [rs-core §11, §13].
//! Which ones there are, and what their manifests list, is read by the reader of the Source's
//! protocol.
//!
//! | file | subject |
//! |---|---|
//! | `listing.rs` | packages and dumps as a Source lists them |
//! | `choose.rs` | the cost rule: packages, or a request for each resource |
//! | `since.rs` | one package with all changes since a time, made on request |
//! | `download.rs` | fetching a package, whole and verified |
//! | `background.rs` | digesting a package while it is received |
//! | `archive.rs` | the members of a ZIP file |
//! | `records.rs` | the records of a WARC file, as members |
//! | `manifest.rs` | which resource is which member |
//! | `buckets.rs` | finding a hash among many |
//! | `supply.rs` | members into the sink |
//!
//! The plan comes from lists wherever there are any, so fixity, deletions and the cursor do not
//! depend on packages at all: a package only supplies bytes that are planned and listed, and what
//! it cannot supply is requested by itself.

pub(crate) mod archive;
mod background;
mod buckets;
pub(crate) mod choose;
pub(crate) mod download;
pub(crate) mod listing;
pub(crate) mod manifest;
mod records;
pub(crate) mod since;
pub(crate) mod supply;
