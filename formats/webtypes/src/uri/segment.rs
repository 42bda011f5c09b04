//! Encoding and decoding of a name as one segment of a URI path [rfc3986 §3.3].

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// Appends the canonical encoding of a name: unreserved characters, sub-delimiters and `@` as they
/// are, every other byte as `%XX` in upper case. `:` is encoded, so that a key never looks like an
/// absolute URI.
///
/// # Examples
/// ```
/// use abreast_webtypes::encode_segment;
///
/// let mut key = String::from("maps/");
/// encode_segment("Köln 1571.tif".as_bytes(), &mut key);
/// assert_eq!(key, "maps/K%C3%B6ln%201571.tif");
/// ```
pub fn encode_segment(name: &[u8], out: &mut String) {
    out.extend(percent_encode(name, ENCODED));
}

/// Replaces every well-formed `%XX`; anything else stays as it is.
///
/// # Examples
/// ```
/// use abreast_webtypes::decode_segment;
///
/// assert_eq!(decode_segment(b"Letter%20to%20Clara"), b"Letter to Clara");
/// assert_eq!(decode_segment(b"100%"), b"100%");
/// ```
pub fn decode_segment(segment: &[u8]) -> Vec<u8> {
    percent_decode(segment).collect()
}

/// Bytes that [`encode_segment`] encodes.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn encodes_what_a_path_cannot_hold() {
        let mut out = String::new();
        encode_segment(b"a b/c:d%e?f#\n\xff\xc3\xa9(1)", &mut out);
        assert_eq!(out, "a%20b%2Fc%3Ad%25e%3Ff%23%0A%FF%C3%A9(1)");
    }

    #[test]
    fn leaves_broken_escapes_alone() {
        assert_eq!(decode_segment(b"100%&%4&%zz%"), b"100%&%4&%zz%");
    }

    #[test]
    fn every_byte_is_raw_or_in_capital_digits() {
        let raw = b"-._~!$&'()*+,;=@";
        for byte in 0..=u8::MAX {
            let mut out = String::new();
            encode_segment(&[byte], &mut out);
            let is_raw = byte.is_ascii_alphanumeric() || raw.contains(&byte);
            let expected = if is_raw { char::from(byte).into() } else { format!("%{byte:02X}") };
            assert_eq!(out, expected);
        }
    }

    proptest! {
        #[test]
        fn any_name_comes_back(name: Vec<u8>) {
            let mut out = String::new();
            encode_segment(&name, &mut out);
            prop_assert_eq!(decode_segment(out.as_bytes()), name);
        }
    }
}
