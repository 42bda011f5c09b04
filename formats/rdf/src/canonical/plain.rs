//! Recognises statements that are canonical N-Triples already, at the speed of a scan.
//!
//! A line is plain when the parser accepts it and [`crate::write_statement`] writes the same bytes.
//! Rare forms (escapes, IRIs that are not ASCII, comments) are not recognised: the parser reads
//! them.

use memchr::memchr;
use oxrdf::vocab::xsd;

/// The parts of a plain line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    /// Length of the subject in bytes.
    pub(crate) subject: usize,
    /// Offset of the object in the line.
    object: usize,
    has_blank: bool,
}

impl Plain {
    /// Scans a line without its end. `subject` is a known plain IRI, with its brackets.
    pub(crate) fn of(line: &[u8], subject: &[u8]) -> Option<Self> {
        let known = !subject.is_empty() && line.starts_with(subject);
        let (subject, has_blank_subject) = match line.first()? {
            b'<' if known => (subject.len(), false),
            b'<' => (iri(line)?, false),
            _ => (blank(line)?, true),
        };
        let predicate = subject + 1;
        let rest = line.get(predicate..).filter(|_| line[subject] == b' ')?;
        let object = predicate + iri(rest)? + 1;
        let rest = line.get(object..).filter(|_| line[object - 1] == b' ')?;
        let (length, has_blank_object) = match rest.first()? {
            b'<' => (iri(rest)?, false),
            b'"' => (literal(rest)?, false),
            _ => (blank(rest)?, true),
        };
        let has_blank = has_blank_subject || has_blank_object;
        (&rest[length..] == b" .").then_some(Self { subject, object, has_blank })
    }

    /// Whether subject or object is a blank node.
    pub(crate) const fn has_blank(self) -> bool {
        self.has_blank
    }

    /// Appends the line with renamed blank nodes: `prefix` is put before their labels.
    pub(crate) fn renamed(self, line: &[u8], prefix: &[u8], out: &mut Vec<u8>) {
        let mut from = 0;
        for at in [0, self.object] {
            if line[at..].starts_with(b"_:") {
                out.extend_from_slice(&line[from..at + 2]);
                out.extend_from_slice(prefix);
                from = at + 2;
            }
        }
        out.extend_from_slice(&line[from..]);
    }
}

/// Whether lines, each with its line feed, are certainly canonical: statements without blank nodes
/// as [`crate::write_statement`] writes them, sorted, without duplicates. Other lines may be
/// canonical too.
///
/// # Examples
/// ```
/// use abreast_rdf::are_canonical;
///
/// let sorted = b"<http://h/7> <http://h/shelf> \"B 3\" .\n<http://h/7> <http://h/title> \"Atlas\" .\n";
/// assert!(are_canonical(sorted));
/// let unsorted =
///     b"<http://h/7> <http://h/title> \"Atlas\" .\n<http://h/7> <http://h/shelf> \"B 3\" .\n";
/// assert!(!are_canonical(unsorted));
/// ```
pub fn are_canonical(mut lines: &[u8]) -> bool {
    let (mut last, mut subject): (&[u8], &[u8]) = (&[], &[]);
    while let Some(end) = memchr(b'\n', lines) {
        let line = &lines[..end];
        match Plain::of(line, subject) {
            Some(plain) if !plain.has_blank && last < line => subject = &line[..plain.subject],
            _ => return false,
        }
        last = line;
        lines = &lines[end + 1..];
    }
    lines.is_empty()
}

/// Bytes that may occur anywhere after the scheme of an IRI.
const IN_IRI: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < 128 {
        let other = matches!(
            byte as u8,
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
                | b':'
                | b'@'
                | b'/'
                | b'?'
        );
        table[byte] = other || (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    table
};

/// The length of an absolute IRI with its brackets.
fn iri(text: &[u8]) -> Option<usize> {
    let end = memchr(b'>', text)?;
    let iri = text[..end].strip_prefix(b"<")?;
    let scheme = memchr(b':', iri)?;
    let is_scheme = iri[0].is_ascii_alphabetic()
        && iri[..scheme].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'+');
    let mut rest = &iri[scheme + 1..];
    if let Some(behind) = rest.strip_prefix(b"//") {
        let host = behind
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
        let host = host.count();
        rest = &behind[host..];
        if host == 0 || !matches!(rest.first(), None | Some(b'/' | b'?' | b'#')) {
            return None;
        }
    }
    let fragment = memchr(b'#', rest).unwrap_or(rest.len());
    let (path, fragment) = (&rest[..fragment], rest.get(fragment + 1..).unwrap_or_default());
    let is_plain = |part: &[u8]| part.iter().all(|byte| IN_IRI[usize::from(*byte)]);
    (is_scheme && is_plain(path) && is_plain(fragment)).then_some(end + 1)
}

/// The length of a blank node.
fn blank(text: &[u8]) -> Option<usize> {
    let label = text.strip_prefix(b"_:")?;
    let length = label.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    (length > 0).then_some(length + 2)
}

/// The length of a literal.
fn literal(text: &[u8]) -> Option<usize> {
    let value = &text[1..];
    let end = memchr(b'"', value)?;
    let value = &value[..end];
    // Bytes that are escaped, or may be: the first byte of U+FFFE and U+FFFF is 0xEF.
    let is_odd = |byte: u8| byte < b' ' || byte == b'\\' || byte == 0x7F || byte == 0xEF;
    let has_odd = value.iter().fold(false, |odd, byte| odd | is_odd(*byte));
    if has_odd || (!value.is_ascii() && str::from_utf8(value).is_err()) {
        return None;
    }
    let behind = end + 2;
    let rest = &text[behind..];
    match rest.first()? {
        b'@' => language(&rest[1..]).map(|length| behind + 1 + length),
        b'^' => {
            let datatype = rest.strip_prefix(b"^^")?;
            let length = iri(datatype)?;
            let name = &datatype[1..length - 1];
            // Literals with these datatypes are written in another form, or not accepted.
            let is_other = name != xsd::STRING.as_str().as_bytes() && !name.starts_with(RDF);
            is_other.then_some(behind + 2 + length)
        }
        _ => Some(behind),
    }
}

const RDF: &[u8] = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// The length of a language tag in a common form: `en`, `en-GB`, `zh-Hans`.
fn language(text: &[u8]) -> Option<usize> {
    let letters = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let first = letters(text);
    let second = text.get(first).filter(|byte| **byte == b'-').map(|_| letters(&text[first + 1..]));
    (matches!(first, 2 | 3) && matches!(second, None | Some(2 | 4)))
        .then_some(first + second.map_or(0, |second| second + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::any::read;
    use crate::{ReadOptions, Syntax, write_statement};
    use std::ops::ControlFlow;

    /// As the parser reads it and the writer writes it.
    fn rewritten(line: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let text = [line, b"\n"].concat();
        read(Syntax::NTriples, text.as_slice(), &ReadOptions::default(), &mut |quad| {
            write_statement(quad.into(), &mut out);
            ControlFlow::Continue(())
        })
        .ok()?;
        Some(out)
    }

    const PLAIN: [&str; 10] = [
        "<http://h/a> <http://h/p> <http://h/b> .",
        "<http://h> <http://h/p#x?y> <urn:a:b@c> .",
        "<http://h/a> <http://h/p> \"a b\" .",
        "<http://h/a> <http://h/p> \"\u{e9}\u{1f600}\"@en .",
        "<http://h/a> <http://h/p> \"\"@zh-Hans .",
        "<mailto:a@b> <x:/y//z> \"2\"^^<http://www.w3.org/2001/XMLSchema#date> .",
        "_:a1 <http://h/p> _:b2 .",
        "<http://h/a> <http://h/p> _:b2 .",
        "_:a1 <http://h/p> \"_:x\" .",
        "<http://h.example/a(b)> <http://h/p> \"<>\" .",
    ];

    #[test]
    fn common_lines_are_plain() {
        for line in PLAIN {
            assert!(Plain::of(line.as_bytes(), b"").is_some(), "{line}");
        }
    }

    /// Every line that differs by a byte or two from a plain one, and is recognised, is canonical.
    #[test]
    fn no_line_is_plain_that_is_written_otherwise() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut recognised = 0;
        for line in PLAIN {
            for at in 0..line.len() {
                for byte in &bytes {
                    let mut changed = line.as_bytes().to_vec();
                    changed[at] = *byte;
                    let mut longer = line.as_bytes().to_vec();
                    longer.insert(at, *byte);
                    for other in [changed, longer] {
                        if other.contains(&b'\n') || Plain::of(&other, b"<http://h/a>").is_none() {
                            continue;
                        }
                        recognised += 1;
                        let shown = String::from_utf8_lossy(&other).into_owned();
                        assert_eq!(
                            rewritten(&other),
                            Some([&other[..], b"\n"].concat()),
                            "{shown}"
                        );
                    }
                }
            }
        }
        assert!(recognised > 10_000, "{recognised}");
    }

    #[test]
    fn odd_lines_are_left_to_the_parser() {
        for line in [
            "",
            "# <http://h/a> <http://h/p> <http://h/b> .",
            "<http://h/a>  <http://h/p> <http://h/b> .",
            "<http://h/a> <http://h/p> <http://h/b> . ",
            "<http://h/a> <http://h/p> <b> .",
            "<http://h/a> _:p <http://h/b> .",
            "\"a\" <http://h/p> <http://h/b> .",
            "<http://h/a> <http://h/p> \"a\\u00e9\" .",
            "<http://h/a> <http://h/p> \"a\"@en-a-bbb .",
            "<http://h/a> <http://h/p> \"a\"^^<http://www.w3.org/2001/XMLSchema#string> .",
            "<http://h/a> <http://h/p> \"a\u{ffff}\" .",
            "<http://h/a> <http://h/p> \"a\" <http://h/g> .",
            "<http://[::1]/a> <http://h/p> \"a\" .",
            "<http://h/a%2> <http://h/p> \"a\" .",
        ] {
            assert_eq!(Plain::of(line.as_bytes(), b""), None, "{line}");
        }
    }

    #[test]
    fn canonical_lines_are_sorted_and_without_blank_nodes() {
        let (a, b) = ("<http://h/a> <http://h/p> \"1\" .\n", "<http://h/b> <http://h/p> \"1\" .\n");
        for (lines, expected) in [
            (String::new(), true),
            ([a, b].concat(), true),
            ([b, a].concat(), false),
            ([a, a].concat(), false),
            (a.trim_end().to_owned(), false),
            ("_:x <http://h/p> \"1\" .\n".to_owned(), false),
        ] {
            assert_eq!(are_canonical(lines.as_bytes()), expected, "{lines}");
        }
    }
}
