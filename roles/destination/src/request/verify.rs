//! Verification of bytes by the listed length and digests [rs-core §7].

use abreast_webtypes::{Algorithm, Digests};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use std::fs::File;
use std::io::{self, Read as _};

/// Bytes read from a file at a time.
const BLOCK_BYTES: usize = 256 << 10;

/// Computes the required digests of a resource while its bytes are received.
#[derive(Clone, Default)]
pub(crate) struct Hasher {
    md5: Option<Md5>,
    sha1: Option<Sha1>,
    sha256: Option<Sha256>,
    sha512: Option<Box<Sha512>>,
}

impl Hasher {
    /// For every algorithm that is listed; MD5 when none is known, to recognise the bytes later.
    pub(crate) fn for_listed(listed: &Digests) -> Self {
        let mut hasher = Self::for_no_others(listed);
        if listed.strongest().is_none() {
            hasher.md5 = Some(Md5::new());
        }
        hasher
    }

    /// For every algorithm that is listed; for none when none is known.
    pub(crate) fn for_no_others(listed: &Digests) -> Self {
        let wants = |algorithm| listed.bytes_of(algorithm).is_some();
        Self {
            md5: wants(Algorithm::Md5).then(Md5::new),
            sha1: wants(Algorithm::Sha1).then(Sha1::new),
            sha256: wants(Algorithm::Sha256).then(Sha256::new),
            sha512: wants(Algorithm::Sha512).then(Box::default),
        }
    }

    /// Whether no digest has to be computed.
    pub(crate) const fn is_idle(&self) -> bool {
        self.md5.is_none() && self.sha1.is_none() && self.sha256.is_none() && self.sha512.is_none()
    }

    /// Whether MD5 is the only digest to compute.
    pub(crate) const fn is_md5_only(&self) -> bool {
        self.md5.is_some() && self.sha1.is_none() && self.sha256.is_none() && self.sha512.is_none()
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        if let Some(sha1) = &mut self.sha1 {
            sha1.update(bytes);
        }
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(bytes);
        }
        if let Some(sha512) = &mut self.sha512 {
            sha512.update(bytes);
        }
    }

    pub(crate) fn finish(self) -> Digests {
        let mut digests = Digests::default();
        if let Some(md5) = self.md5 {
            digests.set(Algorithm::Md5, &md5.finalize());
        }
        if let Some(sha1) = self.sha1 {
            digests.set(Algorithm::Sha1, &sha1.finalize());
        }
        if let Some(sha256) = self.sha256 {
            digests.set(Algorithm::Sha256, &sha256.finalize());
        }
        if let Some(sha512) = self.sha512 {
            digests.set(Algorithm::Sha512, &sha512.finalize());
        }
        digests
    }
}

/// The listed digests of a whole file, and its length in bytes.
pub(crate) fn hash_file(file: &mut File, listed: &Digests) -> io::Result<(Digests, u64)> {
    let mut hasher = Hasher::for_listed(listed);
    let length = hash_into(file, &mut hasher)?;
    Ok((hasher.finish(), length))
}

/// Reads a file from its current offset to its end; returns the number of bytes.
pub(crate) fn hash_into(file: &mut File, hasher: &mut Hasher) -> io::Result<u64> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut length = 0;
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(length),
            Ok(count) => {
                hasher.update(&block[..count]);
                length += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The result of a comparison with the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A listed digest agrees, and so does the length.
    Verified,
    /// No listed digest could be compared; the length agrees where it is listed.
    Unverified,
    /// The length or a digest differs.
    Mismatch,
    /// The listed digests belong to an older version, so the bytes cannot be verified.
    Unknown,
}

pub(crate) fn judge(
    listed: &Digests,
    listed_length: Option<u64>,
    got: &Digests,
    length: u64,
) -> Verdict {
    if listed_length.is_some_and(|listed| listed != length) {
        return Verdict::Mismatch;
    }
    match listed.agree(got) {
        Some(true) => Verdict::Verified,
        Some(false) => Verdict::Mismatch,
        None => Verdict::Unverified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Digests {
        let mut digests = Digests::default();
        digests.parse_into(text.as_bytes()).unwrap();
        digests
    }

    fn of_hello(listed: &Digests) -> Digests {
        let mut hasher = Hasher::for_listed(listed);
        hasher.update(b"he");
        hasher.update(b"llo");
        hasher.finish()
    }

    #[test]
    fn every_listed_digest_counts() {
        let good = "md5:5d41402abc4b2a76b9719d911017c592 sha-1:aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d \
                    sha-256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        let digests = listed(good);
        assert_eq!(judge(&digests, Some(5), &of_hello(&digests), 5), Verdict::Verified);
        assert_eq!(judge(&digests, Some(6), &of_hello(&digests), 5), Verdict::Mismatch);
        let half = listed(&good.replace("aaf4", "0000"));
        assert_eq!(judge(&half, None, &of_hello(&half), 5), Verdict::Mismatch);
    }

    #[test]
    fn unknown_algorithms_prove_nothing() {
        let digests = listed("whirlpool:00");
        assert_eq!(judge(&digests, Some(5), &of_hello(&digests), 5), Verdict::Unverified);
        assert_eq!(of_hello(&digests), listed("md5:5d41402abc4b2a76b9719d911017c592"));
    }
}
