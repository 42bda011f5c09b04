//! Fingerprints: a changed file is detected without reading it.

use abreast_folder::{ErrorKind, Stat};

/// See [`fingerprint_of`].
pub(crate) type Fingerprint = [u8; 32];

/// Detects a changed file without reading it: size, times and inode. ctime changes even when a
/// program restores mtime.
pub(crate) fn fingerprint_of(stat: &Stat) -> Fingerprint {
    let mut out = [0; 32];
    out[0..8].copy_from_slice(&stat.size.to_le_bytes());
    out[8..16].copy_from_slice(&stat.mtime_ns.to_le_bytes());
    out[16..24].copy_from_slice(&stat.ctime_ns.to_le_bytes());
    out[24..32].copy_from_slice(&stat.inode.to_le_bytes());
    out
}

/// Whether nothing to publish is there: no file, or none that is published.
pub(crate) const fn is_gone(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound | ErrorKind::NotFolder | ErrorKind::NotFile | ErrorKind::Symlink
    )
}
