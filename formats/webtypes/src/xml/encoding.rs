//! Encodings besides UTF-8 that documents are found in.

use std::borrow::Cow;

/// The characters of the bytes 0x80 to 0x9f of windows-1252 (<https://encoding.spec.whatwg.org/#windows-1252>); all
/// others have their own numbers.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Decodes windows-1252.
pub(super) fn windows_1252(bytes: &[u8]) -> String {
    let character = |byte: &u8| match byte {
        0x80..=0x9f => WINDOWS_1252[usize::from(byte - 0x80)],
        _ => char::from(*byte),
    };
    bytes.iter().map(character).collect()
}

/// Whether a label means windows-1252. What is labelled ISO-8859-1 is read as windows-1252, which has
/// characters where the former has control characters.
pub(super) fn is_windows_1252(label: &str) -> bool {
    const LABELS: [&str; 7] =
        ["iso-8859-1", "iso_8859-1", "iso8859-1", "latin1", "windows-1252", "cp1252", "x-cp1252"];
    LABELS.iter().any(|known| label.trim().eq_ignore_ascii_case(known))
}

/// Whether a label means UTF-16.
pub(super) fn is_utf_16(label: &str) -> bool {
    ["utf-16", "utf-16le", "utf-16be"].iter().any(|known| label.trim().eq_ignore_ascii_case(known))
}

/// Whether XML that begins like this is in UTF-16 without a byte order mark; if so, whether the first byte of a unit is
/// the higher one (XML, appendix F.1).
pub(super) fn utf_16_without_mark(begin: &[u8]) -> Option<bool> {
    let is_first = |byte: u8| matches!(byte, b'<' | b' ' | b'\t' | b'\r' | b'\n');
    match *begin {
        [0, 0, ..] | [_, 0, 0, 0, ..] => None,
        [first, 0, ..] if is_first(first) => Some(false),
        [0, first, ..] if is_first(first) => Some(true),
        _ => None,
    }
}

/// The encoding that an XML declaration at the begin of a document states [xml §4.3.1].
pub(super) fn declared(begin: &[u8]) -> Option<&str> {
    let inside = begin.strip_prefix(b"<?xml")?;
    let inside = str::from_utf8(inside.split(|byte| *byte == b'?').next()?).ok()?;
    let (_, after) = inside.split_once("encoding")?;
    quoted(after.trim_start().strip_prefix('=')?.trim_start())
}

/// The `charset` of a media type [rfc9110 §8.3.1].
pub(super) fn charset(media_type: &str) -> Option<&str> {
    media_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim();
        name.trim().eq_ignore_ascii_case("charset").then(|| quoted(value).unwrap_or(value))
    })
}

/// What is between the quotes that a text begins with.
fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    text[1..].split_once(quote).map(|(inside, _)| inside)
}

/// The begin of a document in UTF-8, without a byte order mark: UTF-16 is decoded. For finding out what a document is;
/// a character may be cut at the end.
pub fn utf8_begin(begin: &[u8]) -> Cow<'_, [u8]> {
    let (bytes, unit): (_, fn([u8; 2]) -> u16) = match begin {
        [0xef, 0xbb, 0xbf, rest @ ..] => return Cow::Borrowed(rest),
        [0xfe, 0xff, rest @ ..] => (rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => (rest, u16::from_le_bytes),
        _ => match utf_16_without_mark(begin) {
            Some(true) => (begin, u16::from_be_bytes),
            Some(false) => (begin, u16::from_le_bytes),
            None => return Cow::Borrowed(begin),
        },
    };
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let characters = char::decode_utf16(units);
    let text: String = characters.map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Cow::Owned(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_found_in_declarations_and_media_types() {
        for (begin, label) in [
            ("<?xml version='1.0' encoding='ISO-8859-1'?><a/>", Some("ISO-8859-1")),
            ("<?xml version='1.0' encoding = \"x\" standalone='no'?>", Some("x")),
            ("<?xml version='1.0'?><a encoding='x'/>", None),
            ("<?xml version='1.0' encoding='x", None),
            ("<a encoding='x'/>", None),
        ] {
            assert_eq!(declared(begin.as_bytes()), label, "{begin}");
        }
        for (media_type, label) in [
            ("text/xml; a=b;Charset=\"ISO-8859-1\"", Some("ISO-8859-1")),
            ("text/xml;charset=cp1252", Some("cp1252")),
            ("charset=x", None),
            ("text/xml", None),
        ] {
            assert_eq!(charset(media_type), label, "{media_type}");
        }
    }

    #[test]
    fn the_begin_of_a_document_is_recognised_in_utf_16() {
        let text = "<a>\u{1f600}";
        for to_bytes in [u16::to_be_bytes, u16::to_le_bytes] {
            let utf16: Vec<u8> =
                ["\u{feff}", text].concat().encode_utf16().flat_map(to_bytes).collect();
            assert_eq!(&*utf8_begin(&utf16), text.as_bytes());
            assert!(utf8_begin(&utf16[..utf16.len() - 1]).starts_with(b"<a>"));
            assert_eq!(&*utf8_begin(&utf16[2..]), text.as_bytes());
        }
        assert_eq!(&*utf8_begin(b"\xef\xbb\xbf<a>"), b"<a>");
        assert_eq!(&*utf8_begin(b"<a>\xff"), b"<a>\xff");
    }
}
