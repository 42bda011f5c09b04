//! Names of the files and folders that a copy has beside its resources.

/// The database's name in the state folder.
pub(crate) const DATABASE: &str = "mirror.db";
pub(crate) const LOCK: &[u8] = b"lock";
/// The record of the copies of all sets, in the state folder that they have in common.
pub const SETS_RECORD: &str = "sets.json";
/// Its name in the state folder of the copy.
pub(crate) const MARKER: &str = "owner";
/// Folder of the segments in the copy's folder.
pub(crate) const ARCHIVE: &str = "archive";
/// Folder of the index.
pub(crate) const INDEXES: &str = "indexes";
/// The journal of the index, in the state folder.
pub(crate) const JOURNAL: &str = "index.journal";
