//! The options of dumps.

use crate::DigestPolicy;
use std::time::Duration;

/// The compression of members of packages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// As they are: cheap, and collections are mostly compressed already.
    #[default]
    Store,
    /// Deflated.
    Deflate,
}

/// Dumps of one set.
#[derive(Clone, Debug)]
pub struct DumpOptions {
    /// Time between two Resource Dumps, and at most that long until a change is in a Change Dump.
    /// Without `scheduled`, the least age at which asking for a Resource Dump makes a new one.
    pub every: Duration,
    /// Make them when due; otherwise only on request.
    pub scheduled: bool,
    /// Bytes of a package before compression; one with a single larger resource may have more.
    pub part_size: u64,
    /// Resource Dumps that are kept: the newest, and those it replaced.
    pub keep: usize,
    /// A replaced dump remains at least this long, so that downloads finish.
    pub grace: Duration,
    /// The compression of members.
    pub compression: Compression,
    /// Make Change Dumps.
    pub changes: bool,
    /// Bytes of all packages of changes; the oldest leave first.
    pub changes_size: u64,
    /// Digests stated of packages.
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
