//! Which name and which attributes does a start tag have? [xml §3.1]

use super::{MAX_ATTRIBUTES, MAX_NAME_LENGTH, Ns};
use memchr::memchr3;

/// A name as written: where it is in its token, and where its colon is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RawName {
    pub(super) start: u32,
    pub(super) end: u32,
    /// 0 when there is no prefix.
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

/// One attribute: places in its token.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawAttribute {
    pub(super) name: RawName,
    pub(super) value: (u32, u32),
    /// The value has a reference in it.
    pub(super) references: bool,
    /// Filled in when the namespaces of the element are known.
    pub(super) ns: Ns,
}

impl RawAttribute {
    pub(super) fn value(self, token: &str) -> &str {
        &token[self.value.0 as usize..self.value.1 as usize]
    }

    /// The prefix it declares a namespace for, when it does.
    pub(super) fn declares(self, token: &str) -> Option<&str> {
        match (self.name.prefix(token), self.name.local(token)) {
            ("", "xmlns") => Some(""),
            ("xmlns", prefix) => Some(prefix),
            _ => None,
        }
    }
}

/// A fault inside a token: code, place in it, what is wrong.
pub(super) type Fault = (&'static str, usize, String);

fn fault<T>(at: usize, message: impl Into<String>) -> Result<T, Fault> {
    Err(("xml.syntax", at, message.into()))
}

/// Reads a whole tag from `<` to `>`; says its name and whether it ends its element too.
pub(super) fn read(token: &str, attributes: &mut Vec<RawAttribute>) -> Result<(RawName, bool), Fault> {
    attributes.clear();
    let bytes = token.as_bytes();
    let mut end = bytes.len() - 1;
    let closed = bytes[end - 1] == b'/';
    end -= usize::from(closed);
    let bytes = &bytes[..end.max(1)];
    let name = name(token, bytes, 1)?;
    let mut at = name.end as usize;
    loop {
        let spaced = skip_space(bytes, &mut at);
        if at == bytes.len() {
            return Ok((name, closed));
        }
        if !spaced {
            return fault(at, "white space is missing before this");
        }
        if attributes.len() == MAX_ATTRIBUTES {
            return Err(("xml.attributes", at, format!("more than {MAX_ATTRIBUTES} attributes on one element")));
        }
        let name = self::name(token, bytes, at)?;
        at = name.end as usize;
        skip_space(bytes, &mut at);
        if bytes.get(at) != Some(&b'=') {
            return fault(at, format!("`=` is missing after attribute `{}`", crate::excerpt(name.whole(token))));
        }
        at += 1;
        skip_space(bytes, &mut at);
        let Some(quote @ (b'"' | b'\'')) = bytes.get(at).copied() else {
            return fault(at, format!("the value of `{}` is not in quotes", crate::excerpt(name.whole(token))));
        };
        at += 1;
        let start = at;
        let mut references = false;
        loop {
            let Some(found) = memchr3(quote, b'&', b'<', &bytes[at..]) else {
                return fault(start, "the quote is not closed");
            };
            at += found + 1;
            match bytes[at - 1] {
                b'&' => references = true,
                b'<' => return fault(at - 1, "`<` inside a value; it is written `&lt;`"),
                _ => break,
            }
        }
        attributes.push(RawAttribute { name, value: (start as u32, at as u32 - 1), references, ns: Ns::NONE });
    }
}

/// Reads a name that begins there.
pub(super) fn name(token: &str, bytes: &[u8], start: usize) -> Result<RawName, Fault> {
    let mut colon = 0;
    let mut seen = 0;
    let length = bytes[start..].iter().position(|byte| {
        let class = CLASS[usize::from(*byte)];
        seen |= class;
        class & END != 0
    });
    let end = length.map_or(bytes.len(), |length| start + length);
    if seen & (COLON | OTHER) != 0 || end == start || CLASS[usize::from(bytes[start])] & START == 0 {
        colon = checked_colon(token, bytes, start, end)?;
    }
    if end - start > MAX_NAME_LENGTH {
        return Err(("xml.size", start, format!("a name is longer than {MAX_NAME_LENGTH} bytes")));
    }
    Ok(RawName { start: start as u32, end: end as u32, colon: colon as u32 })
}

/// The slow way, for names that are not plain ASCII without a prefix.
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
            return fault(at, format!("`{}` cannot stand in a name here", crate::excerpt(&character.to_string())));
        }
    }
    if first {
        let found = token[end..].chars().next().filter(|_| end < bytes.len()).map(String::from).unwrap_or_default();
        return fault(end, format!("a name is due, not `{}`", crate::excerpt(&found)));
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
/// Not ASCII, or no character of a name: looked at the slow way.
const OTHER: u8 = 4;
/// Ends a name.
const END: u8 = 8;

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
        } else if is_space(byte) || byte == b'=' {
            table[i] = END;
        }
        i += 1;
    }
    table
};

/// NameStartChar without the colon [xml §2.3].
fn is_name_start(character: char) -> bool {
    matches!(character, 'A'..='Z' | 'a'..='z' | '_'
        | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
        | '\u{37f}'..='\u{1fff}' | '\u{200c}' | '\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
}

/// NameChar without the colon [xml §2.3].
fn is_name_character(character: char) -> bool {
    is_name_start(character)
        || matches!(character, '0'..='9' | '-' | '.' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}' | '\u{2040}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(token: &str) -> Result<Vec<String>, String> {
        let mut attributes = Vec::new();
        let (name, closed) = read(token, &mut attributes).map_err(|(_, at, message)| format!("{at}: {message}"))?;
        let mut out = vec![format!("{}|{}{}", name.prefix(token), name.local(token), if closed { "/" } else { "" })];
        out.extend(
            attributes.iter().map(|a| format!("{}|{}={}", a.name.prefix(token), a.name.local(token), a.value(token))),
        );
        Ok(out)
    }

    #[test]
    fn reads_names_and_values() {
        assert_eq!(names("<a>").unwrap(), ["|a"]);
        assert_eq!(names("<a/>").unwrap(), ["|a/"]);
        assert_eq!(names("<p:é.1 x = '>' \n q:y=\"'&amp;\" />").unwrap(), ["p|é.1/", "|x=>", "q|y='&amp;"]);
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
