//! Encoding and decoding of a name as one segment of a URI path [rfc3986 §3.3].

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
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in name {
        if is_raw(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
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
    let mut out = Vec::with_capacity(segment.len());
    let mut rest = segment;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if let (b'%', [high, low, after @ ..]) = (byte, rest)
            && let (Some(high), Some(low)) =
                (char::from(*high).to_digit(16), char::from(*low).to_digit(16))
        {
            out.push((high * 16 + low) as u8);
            rest = after;
            continue;
        }
        out.push(byte);
    }
    out
}

const fn is_raw(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b'@'
        )
}

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

    proptest! {
        #[test]
        fn any_name_comes_back(name: Vec<u8>) {
            let mut out = String::new();
            encode_segment(&name, &mut out);
            prop_assert_eq!(decode_segment(out.as_bytes()), name);
        }
    }
}
