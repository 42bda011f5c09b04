//! Manifest next to a package: check of its digest, and restoration from the package.

use super::digest_of;
use crate::DigestPolicy;
use crate::made::{MAKING, sync_folder};
use abreast_resourcesync::package::MANIFEST;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use zip::ZipArchive;

/// Whether a manifest has the SHA-256 in the record; `false` if the file is missing.
pub(super) fn is_whole(path: &Path, digest: &[u8; 32]) -> io::Result<bool> {
    match digest_of(path, DigestPolicy::Sha256) {
        Ok((_, digests)) => Ok(digests.sha256.as_ref() == Some(digest)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads the manifest in the package next to `path`, if it has the digest.
pub(super) fn of_package(path: &Path, digest: &[u8; 32]) -> io::Result<Vec<u8>> {
    let mut package = ZipArchive::new(File::open(path.with_extension("zip"))?)?;
    let mut manifest = Vec::new();
    package.by_name(MANIFEST)?.read_to_end(&mut manifest)?;
    if Sha256::digest(&manifest).as_slice() != digest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the package is damaged as well"));
    }
    Ok(manifest)
}

/// Replaces a manifest by the copy in the package next to it.
pub(super) fn restore(path: &Path, digest: &[u8; 32]) -> io::Result<()> {
    let manifest = of_package(path, digest)?;
    let folder = path.parent().unwrap_or(path);
    let mut new = tempfile::Builder::new().prefix(MAKING).tempfile_in(folder)?;
    new.write_all(&manifest)?;
    new.as_file().sync_all()?;
    new.persist(path)?;
    sync_folder(folder)
}
