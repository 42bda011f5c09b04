//! Digests in hexadecimal.

use std::fmt::Write as _;

/// Two digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// MD5.
pub fn md5_hex(bytes: impl AsRef<[u8]>) -> String {
    use md5::Digest as _;
    hex(&md5::Md5::digest(bytes))
}

/// SHA-256.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    use sha2::Digest as _;
    hex(&sha2::Sha256::digest(bytes))
}
