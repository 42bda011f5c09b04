//! Addresses of patches in the log of patches.

use crate::projection::routes::{PathValue, routes};
use abreast_core::Position;

routes! {
    /// A patch in the log of a set's patches, by its path below the path of the set.
    #[derive(Copy)]
    enum LogPatch {
        /// The log before the first patch, which is empty.
        Init = "init",
        Current = "current",
        At(position: Position) = "patch/{}",
        Id(uuid: [u8; 16]) = "patch/{}",
    }
}

/// UUID of a patch.
impl PathValue for [u8; 16] {
    fn parse(text: &str) -> Option<Self> {
        rdf_patch::parse_uuid(text)
    }

    fn write(&self, path: &mut String) {
        path.push_str(rdf_patch::uuid_iri(*self).trim_start_matches("uuid:"));
    }
}
