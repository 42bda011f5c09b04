//! Names of the files and folders that a copy contains in addition to its resources.

use crate::copy::fingerprint::Fingerprint;
use crate::copy::path_map::TEMPORARY_PREFIX;
use std::hash::{Hash as _, Hasher as _};

/// The file of the database in the state folder.
pub(crate) const DATABASE: &str = "mirror.db";
pub(crate) const LOCK: &[u8] = b"lock";
/// The record of the copies of all sets, in the state folder that is common to the copies.
pub(crate) const SETS_RECORD: &str = "sets.json";
/// The marker, in the state folder of the copy.
pub(crate) const MARKER: &str = "owner";
/// The journal of the index, in the state folder.
pub(crate) const JOURNAL: &str = "index.journal";
/// The file of a RocksDB store that refers to the store's current manifest.
pub(crate) const CURRENT: &str = "CURRENT";

/// The name of the temporary file for a URI. It depends on the URI only, so that a later run finds
/// the file of a killed run.
pub(crate) fn temporary_name(uri: &str) -> Vec<u8> {
    let mut hasher = Fingerprint::new();
    uri.hash(&mut hasher);
    let mut name = TEMPORARY_PREFIX.to_vec();
    name.extend_from_slice(format!("{:016x}", hasher.finish()).as_bytes());
    name
}
