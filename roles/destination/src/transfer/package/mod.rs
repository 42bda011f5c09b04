//! Packages: many resources in one ZIP or WARC file, instead of a request for each
//! [rs-core §11, §13]. The reader of the Source's protocol reads the list of packages and their
//! manifests; `request/package/` downloads and opens packages, and `plan/manifest.rs` represents
//! the content of a manifest.
//!
//! | file | subject |
//! |---|---|
//! | `choose.rs` | the cost rule: packages, or a request for each resource |
//! | `packages.rs` | the packages of a run, in order |
//! | `since.rs` | one package with all changes since a time, created on request |
//! | `supply.rs` | members into the sink |
//!
//! The plan is made from lists if the Source has any, so fixity, deletions and the cursor are
//! independent of packages. A package only supplies bytes of planned and listed resources; the
//! remaining resources are requested individually.

pub(crate) mod choose;
pub(crate) mod packages;
pub(crate) mod since;
pub(crate) mod supply;
