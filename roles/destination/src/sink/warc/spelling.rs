//! Digests in the spelling of archives, and the error for an archive that cannot be written.

use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use abreast_webtypes::{Algorithm, Digests};

pub(crate) fn write_error(cause: std::io::Error) -> Error {
    let failure = Failure::from(cause);
    Error::new(failure.code, ExitCode::Io, failure.message)
        .with_help("free space or check the disk, then run the same command again")
}

/// The strongest digest in the spelling of archives: base 32 for short digests, hexadecimal for
/// long ones.
pub(super) fn spelled(digests: &Digests) -> Option<String> {
    let algorithm = digests.strongest()?;
    let bytes = digests.bytes_of(algorithm)?;
    Some(match algorithm {
        Algorithm::Md5 => format!("md5:{}", base32(bytes)),
        Algorithm::Sha1 => format!("sha1:{}", base32(bytes)),
        Algorithm::Sha256 => format!("sha256:{}", hex(bytes)),
        Algorithm::Sha512 => format!("sha512:{}", hex(bytes)),
    })
}

/// RFC 4648, section 6.
pub(super) fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for group in bytes.chunks(5) {
        let mut five = [0; 8];
        five[3..3 + group.len()].copy_from_slice(group);
        let bits = u64::from_be_bytes(five);
        let digits = (group.len() * 8).div_ceil(5);
        for digit in 0..8 {
            let value = (bits >> (35 - 5 * digit)) & 31;
            out.push(if digit < digits { char::from(ALPHABET[value as usize]) } else { '=' });
        }
    }
    out
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
