//! Fingerprints, which detect a changed file without reading its content.

use abreast_folder::{ErrorKind, Stat};

/// Digest of file metadata; see [`fingerprint_of`].
pub(crate) type Fingerprint = [u8; 32];

/// Computes a digest of size, times and inode of a file. ctime is included because it changes even
/// if a program restores mtime.
pub(crate) fn fingerprint_of(stat: &Stat) -> Fingerprint {
    let mut out = [0; 32];
    out[0..8].copy_from_slice(&stat.size.to_le_bytes());
    out[8..16].copy_from_slice(&stat.mtime_ns.to_le_bytes());
    out[16..24].copy_from_slice(&stat.ctime_ns.to_le_bytes());
    out[24..32].copy_from_slice(&stat.inode.to_le_bytes());
    out
}

/// Whether an error means that the path does not have a file to publish.
pub(crate) const fn is_gone(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound | ErrorKind::NotFolder | ErrorKind::NotFile | ErrorKind::Symlink
    )
}
