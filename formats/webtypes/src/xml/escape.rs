//! Text written into XML.

/// Bytes that a text or a quoted attribute cannot contain unescaped. 0xEF is the first byte of
/// U+FFFE and U+FFFF.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'&' as usize] = true;
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'"' as usize] = true;
    table[0xef] = true;
    table
};

/// Appends text that is right in elements and in double-quoted attributes.
///
/// Characters that XML 1.0 cannot carry in any form [xml §2.2] are left out: URIs have them
/// percent-encoded.
///
/// # Examples
/// ```
/// use abreast_webtypes::xml::write_escaped;
///
/// let mut out = Vec::new();
/// write_escaped(&mut out, "https://repo.example/search?q=\"maps\"&page=2");
/// assert_eq!(out, b"https://repo.example/search?q=&quot;maps&quot;&amp;page=2");
/// ```
pub fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| SPECIAL[usize::from(*byte)]) {
        out.extend_from_slice(&rest[..at]);
        let mut taken = 1;
        match rest[at] {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\t' => out.extend_from_slice(b"&#9;"),
            b'\n' => out.extend_from_slice(b"&#10;"),
            b'\r' => out.extend_from_slice(b"&#13;"),
            0xef => {
                taken = 3;
                let character = &rest[at..at + 3];
                if !matches!(character, [0xef, 0xbf, 0xbe | 0xbf]) {
                    out.extend_from_slice(character);
                }
            }
            _ => {}
        }
        rest = &rest[at + taken..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        write_escaped(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_markup_and_white_space_that_a_reader_would_change() {
        assert_eq!(escaped("a?x=1&y='<\">\t\n\r"), "a?x=1&amp;y='&lt;&quot;&gt;&#9;&#10;&#13;");
    }

    #[test]
    fn leaves_out_what_xml_cannot_carry() {
        assert_eq!(
            escaped("a\0b\u{1b}c\u{ffff}d\u{fffe}e\u{fffd}f\u{feff}é"),
            "abcde\u{fffd}f\u{feff}é"
        );
    }
}
