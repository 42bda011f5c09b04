//! Packages: many resources in one ZIP file, instead of a request for each [rs-core §11, §13]. Which ones there are, and
//! what their manifests say, is read by `read/resourcesync/`.
//!
//! | file | answers |
//! |---|---|
//! | `listing.rs` | what is said of a dump and its packages? |
//! | `choose.rs` | is it cheaper to take packages than to ask for each resource? |
//! | `since.rs` | is one package with all changes since a time to be had, and cheaper? |
//! | `download.rs` | how does a package get here, whole and verified? |
//! | `aside.rs` | who digests a package while it comes? |
//! | `archive.rs` | which members does a ZIP file hold, and where? |
//! | `manifest.rs` | which resource is which member? |
//! | `shelves.rs` | where does a hash stand among many? |
//! | `supply.rs` | how do members get into the sink? |
//!
//! The plan comes from lists wherever there are any, so fixity, deletions and the cursor do not depend on packages at
//! all: a package only supplies bytes that are planned and listed, and what it cannot supply is asked for by itself.

pub(crate) mod archive;
mod aside;
mod check;
mod choose;
mod download;
pub(crate) mod listing;
pub(crate) mod manifest;
mod shelves;
mod since;
mod supply;

use crate::read::resourcesync::discover::Entrance;
use abreast_webtypes::Timestamp;

pub use check::check_any_input;

/// What a run knows of packages.
#[derive(Debug, Default)]
pub(crate) struct Packages {
    /// The plan is what changed since then; else it is a comparison with all.
    pub(crate) since: Option<Timestamp>,
    /// The plan was made from the manifests of these packages, which are here.
    pub(crate) planned: Option<Chosen>,
    /// The Change Dump to read when the packages of a Resource Dump have been used.
    pub(crate) changes_next: Option<String>,
    /// How much has changed since then.
    pub(crate) changes: since::Changes,
    /// The Capability List as it was read again in this run.
    entrance: Option<Entrance>,
}

/// What is in a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packaged {
    /// All there is at one instant.
    Snapshot,
    /// What changed in a span of time.
    Changes,
}

/// Packages to take resources out of.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) packages: Vec<listing::ListedPackage>,
    /// What is in them.
    pub(crate) packaged: Packaged,
    /// The instant of the snapshot that they are, if it is one.
    pub(crate) at: Option<Timestamp>,
    /// The plan was made from them: their entries are what is listed.
    pub(crate) is_plan: bool,
}
