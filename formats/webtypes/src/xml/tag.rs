//! Names and attributes of start tags [xml §3.1].

use super::{MAX_ATTRIBUTES, MAX_NAME_LENGTH, Ns};
use crate::excerpt;

/// A name as written: where it is in its token, and where its colon is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RawName {
    pub(super) start: u32,
    pub(super) end: u32,
    /// 0 for a name without a prefix.
    pub(super) colon: u32,
}

impl RawName {
    pub(super) fn whole(self, token: &str) -> &str {
        &token[self.start as usize..self.end as usize]
    }

    pub(super) fn prefix(self, token: &str) -> &str {
        if self.colon == 0 { "" } else { &token[self.start as usize..self.colon as usize] }
    }

    pub(super) fn local(self, token: &str) -> &str {
        let start = if self.colon == 0 { self.start } else { self.colon + 1 };
        &token[start as usize..self.end as usize]
    }
}

/// Is an attribute one, or the declaration of a namespace?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Attribute,
    Declaration,
}

/// One attribute: places in its token.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawAttribute {
    pub(super) name: RawName,
    pub(super) value: (u32, u32),
    /// The value has references or white space other than blanks in it.
    pub(super) special: bool,
    pub(super) kind: Kind,
    /// Filled in when the namespaces of the element are known.
    pub(super) ns: Ns,
}

impl RawAttribute {
    pub(super) fn value(self, token: &str) -> &str {
        &token[self.value.0 as usize..self.value.1 as usize]
    }

    /// The prefix it declares a namespace for, when it is a declaration.
    pub(super) fn declares(self, token: &str) -> &str {
        if self.name.colon == 0 { "" } else { self.name.local(token) }
    }
}

/// A fault inside a token: code, place in the token, explanation.
pub(super) type Fault = (&'static str, usize, String);

fn fault<T>(at: usize, message: impl Into<String>) -> Result<T, Fault> {
    Err(("xml.syntax", at, message.into()))
}

/// A start tag as read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub(super) name: RawName,
    /// Whether the tag ends its element too.
    pub(super) closed: bool,
    /// Bytes from `<` to `>`.
    pub(super) length: usize,
}

/// Reads the tag at the start of the text; `None` if the end has not arrived.
///
/// A fault found before the end of the tag is known may turn out to be another one: callers search
/// for the end first.
pub(super) fn read(text: &str, attributes: &mut Vec<RawAttribute>) -> Result<Option<Tag>, Fault> {
    attributes.clear();
    let bytes = text.as_bytes();
    let name = name(text, bytes, 1)?;
    let mut at = name.end as usize;
    loop {
        let spaced = skip_space(bytes, &mut at);
        match bytes[at..] {
            [] | [b'/'] => return Ok(None),
            [b'>', ..] => return Ok(Some(Tag { name, closed: false, length: at + 1 })),
            [b'/', b'>', ..] => return Ok(Some(Tag { name, closed: true, length: at + 2 })),
            _ if !spaced => return fault(at, "white space is missing before this"),
            _ => {}
        }
        if attributes.len() == MAX_ATTRIBUTES {
            return Err((
                "xml.attributes",
                at,
                format!("more than {MAX_ATTRIBUTES} attributes on one element"),
            ));
        }
        let name = self::name(text, bytes, at)?;
        at = name.end as usize;
        skip_space(bytes, &mut at);
        match bytes.get(at) {
            Some(b'=') => at += 1,
            Some(_) => {
                return fault(
                    at,
                    format!("`=` is missing after attribute `{}`", excerpt(name.whole(text))),
                );
            }
            None => return Ok(None),
        }
        skip_space(bytes, &mut at);
        let quote = match bytes.get(at) {
            Some(quote @ (b'"' | b'\'')) => *quote,
            Some(_) => {
                return fault(
                    at,
                    format!("the value of `{}` is not in quotes", excerpt(name.whole(text))),
                );
            }
            None => return Ok(None),
        };
        at += 1;
        let start = at;
        let mut special = false;
        loop {
            let Some(found) =
                bytes[at..].iter().position(|byte| CLASS[usize::from(*byte)] & VALUE != 0)
            else {
                return Ok(None);
            };
            at += found + 1;
            match bytes[at - 1] {
                byte if byte == quote => break,
                b'<' => return fault(at - 1, "`<` inside a value; it is written `&lt;`"),
                b'"' | b'\'' => {}
                _ => special = true,
            }
        }
        let kind = if is_declaration(bytes, name) { Kind::Declaration } else { Kind::Attribute };
        attributes.push(RawAttribute {
            name,
            value: (start as u32, at as u32 - 1),
            special,
            kind,
            ns: Ns::NONE,
        });
    }
}

/// `xmlns` or `xmlns:prefix`
fn is_declaration(bytes: &[u8], name: RawName) -> bool {
    let end = if name.colon == 0 { name.end } else { name.colon };
    matches!(&bytes[name.start as usize..end as usize], b"xmlns")
}

/// Reads the name at this place.
pub(super) fn name(token: &str, bytes: &[u8], start: usize) -> Result<RawName, Fault> {
    let mut colon = 0;
    let mut seen = 0;
    let length = bytes[start..].iter().position(|byte| {
        let class = CLASS[usize::from(*byte)];
        seen |= class;
        class & END != 0
    });
    let end = length.map_or(bytes.len(), |length| start + length);
    if seen & (COLON | OTHER) != 0 || end == start || CLASS[usize::from(bytes[start])] & START == 0
    {
        colon = checked_colon(token, bytes, start, end)?;
    }
    if end - start > MAX_NAME_LENGTH {
        return Err(("xml.size", start, format!("a name is longer than {MAX_NAME_LENGTH} bytes")));
    }
    Ok(RawName { start: start as u32, end: end as u32, colon: colon as u32 })
}

/// The slow way, for prefixed names and for names with other characters than ASCII.
fn checked_colon(token: &str, bytes: &[u8], start: usize, end: usize) -> Result<usize, Fault> {
    let mut colon = 0;
    let mut first = true;
    for (offset, character) in token[start..end].char_indices() {
        let at = start + offset;
        if character == ':' && !first && colon == 0 {
            colon = at;
            first = true;
        } else if is_name_start(character) || (!first && is_name_character(character)) {
            first = false;
        } else {
            return fault(
                at,
                format!("`{}` cannot stand in a name here", excerpt(&character.to_string())),
            );
        }
    }
    if first {
        let found = token[end..]
            .chars()
            .next()
            .filter(|_| end < bytes.len())
            .map(String::from)
            .unwrap_or_default();
        return fault(end, format!("invalid XML: expected a name, found `{}`", excerpt(&found)));
    }
    Ok(colon)
}

fn skip_space(bytes: &[u8], at: &mut usize) -> bool {
    let start = *at;
    while bytes.get(*at).is_some_and(|byte| is_space(*byte)) {
        *at += 1;
    }
    *at > start
}

/// White space [xml §2.3].
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

const START: u8 = 1;
const COLON: u8 = 2;
/// Not ASCII, or no character of a name: checked the slow way.
const OTHER: u8 = 4;
/// Ends a name.
const END: u8 = 8;
/// Needs a check inside a value: quotes, references, `<`, white space that becomes a blank.
const VALUE: u8 = 16;

const CLASS: [u8; 256] = {
    let mut table = [OTHER; 256];
    let mut i = 0;
    while i < 256 {
        let byte = i as u8;
        if byte.is_ascii_alphabetic() || byte == b'_' {
            table[i] = START;
        } else if byte.is_ascii_digit() || matches!(byte, b'-' | b'.') {
            table[i] = 0;
        } else if byte == b':' {
            table[i] = COLON;
        } else if is_space(byte) || matches!(byte, b'=' | b'>' | b'/') {
            table[i] = END;
        }
        if byte < b' ' || matches!(byte, b'"' | b'\'' | b'&' | b'<') {
            table[i] |= VALUE;
        }
        i += 1;
    }
    table
};

/// NameStartChar without the colon [xml §2.3].
pub fn is_name_start(character: char) -> bool {
    matches!(character, 'A'..='Z' | 'a'..='z' | '_'
        | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
        | '\u{37f}'..='\u{1fff}' | '\u{200c}' | '\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
}

/// Whether a text is a name without a colon [xml-names §3].
pub fn is_nc_name(text: &str) -> bool {
    text.starts_with(is_name_start) && text.chars().all(is_name_character)
}

/// NameChar without the colon [xml §2.3].
pub fn is_name_character(character: char) -> bool {
    is_name_start(character)
        || matches!(character, '0'..='9' | '-' | '.' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}' | '\u{2040}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(token: &str) -> Result<Vec<String>, String> {
        let mut attributes = Vec::new();
        let read =
            read(token, &mut attributes).map_err(|(_, at, message)| format!("{at}: {message}"))?;
        let Tag { name, closed, .. } = read.ok_or("cut")?;
        let mut out = vec![format!(
            "{}|{}{}",
            name.prefix(token),
            name.local(token),
            if closed { "/" } else { "" }
        )];
        out.extend(attributes.iter().map(|a| {
            format!("{}|{}={}", a.name.prefix(token), a.name.local(token), a.value(token))
        }));
        Ok(out)
    }

    #[test]
    fn reads_names_and_values() {
        assert_eq!(names("<a>").unwrap(), ["|a"]);
        assert_eq!(names("<a/>").unwrap(), ["|a/"]);
        assert_eq!(
            names("<p:é.1 x = '>' \n q:y=\"'&amp;\" />").unwrap(),
            ["p|é.1/", "|x=>", "q|y='&amp;"]
        );
    }

    #[test]
    fn refuses_what_is_no_tag() {
        for token in [
            "<>",
            "</>",
            "< a>",
            "<1>",
            "<a:>",
            "<:a>",
            "<a:b:c>",
            "<a b>",
            "<a b=>",
            "<a b=c>",
            "<a b='c'd='e'>",
            "<a 'b'>",
            "<a b='<'>",
            "<a/ >",
            "<a b='c'/'>",
            "<a\u{d7}>",
            "<a b='c>",
            "<a =''>",
            "<a b:='c'>",
            "<a / b='c'>",
        ] {
            assert!(names(token).is_err(), "{token}");
        }
    }
}
