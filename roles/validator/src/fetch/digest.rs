//! Digests of bytes: only the stated algorithms are computed.

use abreast_webtypes::{Algorithm, Digests};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

/// Computes the stated digests of a stream of bytes.
#[derive(Default)]
pub(crate) struct Hasher {
    md5: Option<Md5>,
    sha1: Option<Sha1>,
    sha256: Option<Sha256>,
    sha512: Option<Sha512>,
    pub(crate) length: u64,
}

impl Hasher {
    /// For the algorithms of these digests.
    pub(crate) fn of(stated: &Digests) -> Self {
        Self {
            md5: stated.md5.map(|_| Md5::new()),
            sha1: stated.sha1.map(|_| Sha1::new()),
            sha256: stated.sha256.map(|_| Sha256::new()),
            sha512: stated.sha512.as_ref().map(|_| Sha512::new()),
            length: 0,
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if let Some(hasher) = &mut self.md5 {
            hasher.update(bytes);
        }
        if let Some(hasher) = &mut self.sha1 {
            hasher.update(bytes);
        }
        if let Some(hasher) = &mut self.sha256 {
            hasher.update(bytes);
        }
        if let Some(hasher) = &mut self.sha512 {
            hasher.update(bytes);
        }
    }

    pub(crate) fn finish(self) -> Digests {
        let mut digests = Digests::default();
        if let Some(hasher) = self.md5 {
            digests.set(Algorithm::Md5, &hasher.finalize());
        }
        if let Some(hasher) = self.sha1 {
            digests.set(Algorithm::Sha1, &hasher.finalize());
        }
        if let Some(hasher) = self.sha256 {
            digests.set(Algorithm::Sha256, &hasher.finalize());
        }
        if let Some(hasher) = self.sha512 {
            digests.set(Algorithm::Sha512, &hasher.finalize());
        }
        digests
    }
}
