//! Digests of bytes. Only the algorithms in the list are computed.

use abreast_webtypes::{Algorithm, Digests};
use md5::Md5;
use sha1::Sha1;
use sha2::digest::DynDigest;
use sha2::{Sha256, Sha512};

/// Computes the listed digests of a stream of bytes.
#[derive(Default)]
pub(crate) struct Hasher {
    each: Vec<(Algorithm, Box<dyn DynDigest>)>,
    pub(crate) length: u64,
}

impl Hasher {
    /// A hasher for the algorithms of these digests.
    pub(crate) fn of(stated: &Digests) -> Self {
        let mut hasher = Self::default();
        let mut add = |is_stated: bool, algorithm, digest: Box<dyn DynDigest>| {
            hasher.each.extend(is_stated.then_some((algorithm, digest)));
        };
        add(stated.md5.is_some(), Algorithm::Md5, Box::<Md5>::default());
        add(stated.sha1.is_some(), Algorithm::Sha1, Box::<Sha1>::default());
        add(stated.sha256.is_some(), Algorithm::Sha256, Box::<Sha256>::default());
        add(stated.sha512.is_some(), Algorithm::Sha512, Box::<Sha512>::default());
        hasher
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.each.iter_mut().for_each(|(_, digest)| digest.update(bytes));
    }

    pub(crate) fn finish(self) -> Digests {
        let mut digests = Digests::default();
        for (algorithm, digest) in self.each {
            digests.set(algorithm, &digest.finalize());
        }
        digests
    }
}
