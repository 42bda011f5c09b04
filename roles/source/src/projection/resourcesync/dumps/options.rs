//! Options for the dumps of a set.

use crate::DigestPolicy;
use std::time::Duration;

/// Compression of the members of packages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Stored without compression, because the files of most collections are compressed.
    #[default]
    Store,
    /// Compressed with the method deflate.
    Deflate,
}

/// Options for the dumps of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// Time between two Resource Dumps, and longest delay until a change is in a Change Dump.
    /// Without `scheduled`, the age at which a request for the Resource Dump starts a new one.
    pub every: Duration,
    /// Make dumps when they are due; otherwise only on request.
    pub scheduled: bool,
    /// Largest size of a package in bytes before compression; a package with a single larger
    /// resource may exceed it.
    pub part_size: u64,
    /// Number of stored Resource Dumps: the newest, and replaced dumps.
    pub keep: usize,
    /// Least time for which a replaced dump is stored, so that downloads finish.
    pub grace: Duration,
    /// Compression of the members of packages.
    pub compression: Compression,
    /// Whether Change Dumps are made.
    pub changes: bool,
    /// Largest total size of packages of changes in bytes; the oldest are removed first.
    pub changes_size: u64,
    /// Kinds of digests for packages in documents.
    pub digests: DigestPolicy,
    /// How long a resource that does not agree with the log is retried.
    pub patience: Duration,
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(24 * 3_600),
            scheduled: true,
            part_size: 1 << 30,
            keep: 2,
            grace: Duration::from_secs(3_600),
            compression: Compression::Store,
            changes: false,
            changes_size: 10 << 30,
            digests: DigestPolicy::Md5,
            patience: Duration::from_secs(30),
        }
    }
}
