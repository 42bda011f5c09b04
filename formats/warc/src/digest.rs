//! Digests as archives write them.

use abreast_webtypes::{Algorithm, Digests};

/// Reads `algorithm:value`, the value in hexadecimal, base 32 or base 64. The result is empty for an
/// unknown algorithm and for a value of the wrong length.
///
/// # Examples
/// ```
/// use abreast_warc::parse_digest;
///
/// // The SHA-1 of no bytes, in base 32 as crawlers write it.
/// let digests = parse_digest("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
/// assert_eq!(digests.to_string(), "sha-1:da39a3ee5e6b4b0d3255bfef95601890afd80709");
/// ```
pub fn parse_digest(text: &str) -> Digests {
    let mut digests = Digests::default();
    let Some((name, value)) = text.trim().split_once(':') else { return digests };
    let Some(algorithm) = Algorithm::from_token(name.as_bytes()) else { return digests };
    if digests.parse_value_into(algorithm, value.as_bytes()).is_err()
        && let Some(bytes) = from_base32(value, algorithm.length())
    {
        digests.set(algorithm, &bytes);
    }
    digests
}

/// RFC 4648, section 6; with padding or without.
fn from_base32(text: &str, length: usize) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if digits.len() != (length * 8).div_ceil(5) {
        return None;
    }
    let (mut bytes, mut word, mut bits) = (Vec::with_capacity(length), 0_u32, 0);
    for digit in digits {
        let value = match digit.to_ascii_uppercase() {
            letter @ b'A'..=b'Z' => letter - b'A',
            number @ b'2'..=b'7' => number - b'2' + 26,
            _ => return None,
        };
        (word, bits) = (word << 5 | u32::from(value), bits + 5);
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
            word &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_in_every_spelling() {
        // Of the text `hello`.
        for text in [
            "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N",
            "SHA-1:aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d",
            "sha1:qvTGHdzF6KLavt4PO0gs2a6pQ00=",
        ] {
            let read = parse_digest(text).sha1.map(|bytes| bytes[..4].to_vec());
            assert_eq!(read, Some(vec![0xaa, 0xf4, 0xc6, 0x1d]), "{text}");
        }
        let padded = "sha256:FTZE3OS7WCRQ4JXIHMVMLOPCTYNRMHS4D6TUEXTTAQZWFE4LTASA====";
        let read = parse_digest(padded);
        assert_eq!(read.sha256.map(|bytes| bytes[0]), Some(0x2c));
        assert_eq!(parse_digest(padded.trim_end_matches('=')), read);
        for text in [
            "",
            "sha1",
            "crc32:00000000",
            "sha1:ABC",
            "md5:1",
            "sha1:????????????????????????????????",
        ] {
            assert!(parse_digest(text).is_empty(), "{text}");
        }
    }
}
