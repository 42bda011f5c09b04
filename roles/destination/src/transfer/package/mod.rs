//! Packages: many resources in one ZIP or WARC file, instead of a request for each [rs-core §11, §13].
//! Which ones there are, and what their manifests list, is read by the reader of the Source's
//! protocol; `request/package/` downloads and opens them, and `plan/manifest.rs` is what a manifest lists.
//!
//! | file | subject |
//! |---|---|
//! | `choose.rs` | the cost rule: packages, or a request for each resource |
//! | `packages.rs` | the packages of a run, in order |
//! | `since.rs` | one package with all changes since a time, made on request |
//! | `supply.rs` | members into the sink |
//!
//! The plan comes from lists wherever there are any, so fixity, deletions and the cursor do not
//! depend on packages at all: a package only supplies bytes that are planned and listed, and what
//! it cannot supply is requested by itself.

pub(crate) mod choose;
pub(crate) mod packages;
pub(crate) mod since;
pub(crate) mod supply;
