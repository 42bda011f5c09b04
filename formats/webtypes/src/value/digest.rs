//! Digests of a resource: `hash="md5:… sha-256:…"` [rs-core §7].

use base64::Engine as _;
use std::fmt;
use thiserror::Error;

/// A digest algorithm that this program can compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// RFC 1321; the cheapest that the specifications name.
    Md5,
    /// Secure Hash Algorithm 1, FIPS 180-4
    Sha1,
    /// SHA-2 with 256 bits, FIPS 180-4
    Sha256,
    /// SHA-2 with 512 bits, FIPS 180-4
    Sha512,
}

impl Algorithm {
    /// Every known algorithm, the weakest first.
    pub const ALL: [Self; 4] = [Self::Md5, Self::Sha1, Self::Sha256, Self::Sha512];

    /// The token that ResourceSync documents use.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha-1",
            Self::Sha256 => "sha-256",
            Self::Sha512 => "sha-512",
        }
    }

    /// Length of a digest in bytes.
    pub const fn length(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// Reads a token; spellings without the hyphen occur in the field and mean the same.
    pub fn from_token(token: &[u8]) -> Option<Self> {
        Some(match token {
            b"md5" => Self::Md5,
            b"sha-256" => Self::Sha256,
            b"sha-1" => Self::Sha1,
            b"sha-512" => Self::Sha512,
            _ if token.eq_ignore_ascii_case(b"md5") || token.eq_ignore_ascii_case(b"md-5") => {
                Self::Md5
            }
            _ if token.eq_ignore_ascii_case(b"sha1") || token.eq_ignore_ascii_case(b"sha-1") => {
                Self::Sha1
            }
            _ if token.eq_ignore_ascii_case(b"sha256")
                || token.eq_ignore_ascii_case(b"sha-256") =>
            {
                Self::Sha256
            }
            _ if token.eq_ignore_ascii_case(b"sha512")
                || token.eq_ignore_ascii_case(b"sha-512") =>
            {
                Self::Sha512
            }
            _ => return None,
        })
    }
}

/// The listed digests of a resource: at most one for each algorithm, and the tokens of unknown
/// algorithms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// The MD5 digest, if listed
    pub md5: Option<[u8; 16]>,
    /// The SHA-1 digest, if listed
    pub sha1: Option<[u8; 20]>,
    /// The SHA-256 digest, if listed
    pub sha256: Option<[u8; 32]>,
    /// The SHA-512 digest, if listed
    pub sha512: Option<Box<[u8; 64]>>,
    /// Tokens of algorithms that this program does not know, as written. Lenient reading adds whole
    /// tokens that it cannot read. The list has at most [`Digests::MAX_UNKNOWN`] tokens.
    pub unknown: Vec<String>,
}

/// Why a `hash` value could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseDigestError {
    /// No `algorithm:` before the value.
    #[error("`{0}` has no algorithm; expected for example `md5:1e0d5cb8ef6ba40c99b14c0237be735e`")]
    NoAlgorithm(String),
    /// The value is neither hex nor base64 of the right length.
    #[error("`{value}` is no {} digest", .algorithm.token())]
    Value {
        /// Algorithm of the unreadable digest.
        algorithm: Algorithm,
        /// The value as written, cut to 80 characters.
        value: String,
    },
}

impl Digests {
    /// Most unknown tokens that are stored.
    pub const MAX_UNKNOWN: usize = 8;

    /// Whether there is neither a known nor an unknown digest.
    pub fn is_empty(&self) -> bool {
        self.strongest().is_none() && self.unknown.is_empty()
    }

    /// The listed digest for this algorithm, as bytes; `None` if the algorithm is not listed.
    pub fn bytes_of(&self, algorithm: Algorithm) -> Option<&[u8]> {
        match algorithm {
            Algorithm::Md5 => self.md5.as_ref().map(<[u8; 16]>::as_slice),
            Algorithm::Sha1 => self.sha1.as_ref().map(<[u8; 20]>::as_slice),
            Algorithm::Sha256 => self.sha256.as_ref().map(<[u8; 32]>::as_slice),
            Algorithm::Sha512 => self.sha512.as_ref().map(|bytes| bytes.as_slice()),
        }
    }

    /// The strongest known algorithm with a listed digest.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::{Algorithm, Digests};
    ///
    /// let mut digests = Digests::default();
    /// digests.set(Algorithm::Sha256, &[7; 32]);
    /// digests.set(Algorithm::Md5, &[7; 16]);
    /// assert_eq!(digests.strongest(), Some(Algorithm::Sha256));
    /// ```
    pub fn strongest(&self) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().rev().find(|algorithm| self.bytes_of(*algorithm).is_some())
    }

    /// Whether two sets of digests agree; `None` when they share no algorithm.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::Digests;
    ///
    /// let (mut listed, mut computed) = (Digests::default(), Digests::default());
    /// listed.parse_into(b"md5:5d41402abc4b2a76b9719d911017c592")?;
    /// assert_eq!(listed.agree(&computed), None);
    /// computed.parse_into(b"md5:00000000000000000000000000000000")?;
    /// assert_eq!(listed.agree(&computed), Some(false));
    /// # Ok::<(), abreast_webtypes::ParseDigestError>(())
    /// ```
    pub fn agree(&self, other: &Self) -> Option<bool> {
        let mut answer = None;
        for algorithm in Algorithm::ALL {
            if let (Some(one), Some(two)) = (self.bytes_of(algorithm), other.bytes_of(algorithm)) {
                if one != two {
                    return Some(false);
                }
                answer = Some(true);
            }
        }
        answer
    }

    /// States one digest, replacing an earlier one of the same algorithm. Bytes of another length
    /// are ignored.
    pub fn set(&mut self, algorithm: Algorithm, bytes: &[u8]) {
        match algorithm {
            Algorithm::Md5 => self.md5 = bytes.try_into().ok().or(self.md5),
            Algorithm::Sha1 => self.sha1 = bytes.try_into().ok().or(self.sha1),
            Algorithm::Sha256 => self.sha256 = bytes.try_into().ok().or(self.sha256),
            Algorithm::Sha512 => {
                if let Ok(bytes) = <[u8; 64]>::try_from(bytes) {
                    self.sha512 = Some(Box::new(bytes));
                }
            }
        }
    }

    /// Removes all digests; allocations are reused for the next document.
    pub fn clear(&mut self) {
        (self.md5, self.sha1, self.sha256, self.sha512) = (None, None, None, None);
        self.unknown.clear();
    }

    /// Reads a `hash` attribute: tokens `algorithm:value` separated by white space, value in hex.
    ///
    /// Lenient: base64 values, which some publishers write. Unknown algorithms are noted, not
    /// errors.
    ///
    /// # Errors
    /// A token without algorithm, or a value that cannot be a digest of its algorithm.
    pub fn parse_into(&mut self, attribute: &[u8]) -> Result<(), ParseDigestError> {
        tokens(attribute).try_for_each(|token| self.parse_token_into(token))
    }

    /// Reads a `hash` attribute like [`Digests::parse_into`], but stores an unreadable token among
    /// the unknown tokens. Such a digest cannot be checked, which does not justify the refusal of a
    /// whole document. Returns whether all tokens were read.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::Digests;
    ///
    /// let mut digests = Digests::default();
    /// let is_complete = digests.parse_leniently_into(
    ///     b"md5:5d41402abc4b2a76b9719d911017c592 sha-256:truncated",
    /// );
    /// assert!(!is_complete);
    /// assert!(digests.md5.is_some());
    /// assert_eq!(digests.unknown, ["sha-256:truncated"]);
    /// ```
    pub fn parse_leniently_into(&mut self, attribute: &[u8]) -> bool {
        let mut are_all_read = true;
        for token in tokens(attribute) {
            if self.parse_token_into(token).is_err() {
                are_all_read = false;
                if self.unknown.len() < Self::MAX_UNKNOWN {
                    self.unknown.push(shown(token));
                }
            }
        }
        are_all_read
    }

    fn parse_token_into(&mut self, token: &[u8]) -> Result<(), ParseDigestError> {
        let Some(colon) = memchr::memchr(b':', token) else {
            return Err(ParseDigestError::NoAlgorithm(shown(token)));
        };
        let (name, value) = (&token[..colon], &token[colon + 1..]);
        match Algorithm::from_token(name) {
            Some(algorithm) => self.parse_value_into(algorithm, value)?,
            None if self.unknown.len() < Self::MAX_UNKNOWN => self.unknown.push(shown(name)),
            None => {}
        }
        Ok(())
    }

    /// Reads one value in hex, or in base64 as ResourceSync 0.1 writes it.
    ///
    /// # Errors
    /// The value is neither.
    pub fn parse_value_into(
        &mut self,
        algorithm: Algorithm,
        value: &[u8],
    ) -> Result<(), ParseDigestError> {
        let mut bytes = [0_u8; 64];
        let length = algorithm.length();
        if value.len() == length * 2 && from_hex(value, &mut bytes[..length]) {
            self.set(algorithm, &bytes[..length]);
            return Ok(());
        }
        let mut bytes = [0_u8; 96];
        match BASE64.decode_slice(value, &mut bytes) {
            Ok(decoded) if decoded == length => {
                self.set(algorithm, &bytes[..length]);
                Ok(())
            }
            _ => Err(ParseDigestError::Value { algorithm, value: shown(value) }),
        }
    }

    /// Writes a `hash` attribute value: known digests in hex, separated by spaces.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let mut first = true;
        for algorithm in Algorithm::ALL {
            if let Some(bytes) = self.bytes_of(algorithm) {
                if !first {
                    out.push(b' ');
                }
                first = false;
                out.extend_from_slice(algorithm.token().as_bytes());
                out.push(b':');
                for byte in bytes {
                    out.push(HEX[usize::from(byte >> 4)]);
                    out.push(HEX[usize::from(byte & 15)]);
                }
            }
        }
    }

    /// Appends one digest in base64, as ResourceSync 0.1 writes it. An absent digest appends
    /// nothing.
    pub fn write_base64_to(&self, algorithm: Algorithm, out: &mut Vec<u8>) {
        let Some(bytes) = self.bytes_of(algorithm) else { return };
        let mut text = [0; 88];
        if let Ok(length) = BASE64.encode_slice(bytes, &mut text) {
            out.extend_from_slice(&text[..length]);
        }
    }

    /// A compact form for stores: for each known digest its algorithm's number, then its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(17);
        for (number, algorithm) in Algorithm::ALL.into_iter().enumerate() {
            if let Some(bytes) = self.bytes_of(algorithm) {
                out.push(number as u8);
                out.extend_from_slice(bytes);
            }
        }
        out
    }

    /// The inverse of [`Digests::to_bytes`]; anything unreadable ends the reading.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::Digests;
    ///
    /// let (mut digests, mut loaded) = (Digests::default(), Digests::default());
    /// digests.parse_into(b"md5:5d41402abc4b2a76b9719d911017c592")?;
    /// loaded.set_from_bytes(&digests.to_bytes());
    /// assert_eq!(loaded, digests);
    /// # Ok::<(), abreast_webtypes::ParseDigestError>(())
    /// ```
    pub fn set_from_bytes(&mut self, mut bytes: &[u8]) {
        self.clear();
        while let Some((number, rest)) = bytes.split_first() {
            let Some(algorithm) = Algorithm::ALL.get(usize::from(*number)) else { return };
            if rest.len() < algorithm.length() {
                return;
            }
            let (value, rest) = rest.split_at(algorithm.length());
            self.set(*algorithm, value);
            bytes = rest;
        }
    }
}

impl fmt::Display for Digests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        self.write_to(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

const BASE64: base64::engine::GeneralPurpose = base64::engine::general_purpose::STANDARD;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// 255 for a byte that is not a hex digit.
const UNHEX: [u8; 256] = {
    let mut table = [255; 256];
    let mut i = 0;
    while i < 16 {
        table[HEX[i] as usize] = i as u8;
        table[HEX[i].to_ascii_uppercase() as usize] = i as u8;
        i += 1;
    }
    table
};

fn from_hex(text: &[u8], out: &mut [u8]) -> bool {
    let mut bad = 0;
    for (pair, byte) in text.chunks_exact(2).zip(out) {
        let (high, low) = (UNHEX[usize::from(pair[0])], UNHEX[usize::from(pair[1])]);
        bad |= high | low;
        *byte = high << 4 | (low & 15);
    }
    bad & 0xf0 == 0
}

fn tokens(attribute: &[u8]) -> impl Iterator<Item = &[u8]> {
    attribute.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty())
}

fn shown(value: &[u8]) -> String {
    String::from_utf8_lossy(value).chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Digests, ParseDigestError> {
        let mut digests = Digests::default();
        digests.parse_into(text.as_bytes()).map(|()| digests)
    }

    #[test]
    fn base64_reads_back() {
        let stated = read("sha-1:aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d sha-512:00").unwrap_err();
        assert!(matches!(stated, ParseDigestError::Value { algorithm: Algorithm::Sha512, .. }));
        let stated = read("sha-1:aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d").unwrap();
        let mut out = Vec::new();
        stated.write_base64_to(Algorithm::Md5, &mut out);
        stated.write_base64_to(Algorithm::Sha1, &mut out);
        assert_eq!(out, b"qvTGHdzF6KLavt4PO0gs2a6pQ00=");
        let mut again = Digests::default();
        again.parse_value_into(Algorithm::Sha1, &out).unwrap();
        assert_eq!(again, stated);
        let long = [b'A'; 4_096];
        assert!(again.parse_value_into(Algorithm::Sha512, &long).is_err());
    }

    #[test]
    fn reads_lists_with_any_white_space_and_keeps_unknown_names() {
        let read =
            read("md5:1e0d5cb8ef6ba40c99b14c0237be735e\n   whirlpool:00 SHA1:aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d")
                .unwrap();
        assert_eq!(
            read.to_string(),
            "md5:1e0d5cb8ef6ba40c99b14c0237be735e sha-1:aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"
        );
        assert_eq!(read.unknown, ["whirlpool"]);
        assert_eq!(read.strongest(), Some(Algorithm::Sha1));
    }

    #[test]
    fn reads_base64_where_hex_is_due() {
        assert_eq!(
            read("md5:XUFAKrxLKna5cZ2REBfFkg==").unwrap(),
            read("md5:5d41402abc4b2a76b9719d911017c592").unwrap()
        );
    }

    #[test]
    fn refuses_values_that_are_no_digest() {
        for text in [
            "5d41402abc4b2a76b9719d911017c592",
            "md5:",
            "md5:5d41",
            "md5:gg41402abc4b2a76b9719d911017c592",
            "sha-256:5d41402abc4b2a76b9719d911017c592",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn digests_without_a_shared_algorithm_neither_agree_nor_differ() {
        let md5 = read("md5:5d41402abc4b2a76b9719d911017c592").unwrap();
        let sha1 = read("sha-1:aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d").unwrap();
        assert_eq!(md5.agree(&sha1), None);
        assert_eq!(md5.agree(&md5), Some(true));
        assert_eq!(md5.agree(&read("md5:00000000000000000000000000000000").unwrap()), Some(false));
    }

    proptest! {
        #[test]
        fn stored_and_written_forms_read_back_equal(md5: Option<[u8; 16]>, sha256: Option<[u8; 32]>) {
            let digests = Digests { md5, sha256, ..Digests::default() };
            let mut again = Digests::default();
            again.set_from_bytes(&digests.to_bytes());
            prop_assert_eq!(&again, &digests);
            prop_assert_eq!(&read(&digests.to_string()).unwrap(), &digests);
        }

        #[test]
        fn no_bytes_panic(text: Vec<u8>) {
            let mut digests = Digests::default();
            let _ = digests.parse_into(&text);
            digests.set_from_bytes(&text);
        }
    }
}
