//! Statements of canonical N-Triples: writing, and splitting a line without a copy.
//!
//! Terms are written as RDF canonicalisation writes them: one space between terms,
//! `\t \n \r \b \f \" \\` and `\uXXXX` for other control characters, no unnecessary escapes,
//! `xsd:string` left out. Comparing subject, predicate and object of two lines then gives the same
//! order as comparing the lines.

use std::borrow::Cow;

use memchr::memchr;
use oxilangtag::LanguageTag;
use oxrdf::vocab::xsd;
use oxrdf::{
    BlankNode, Literal, NamedNode, NamedOrBlankNode, NamedOrBlankNodeRef, TermRef, Triple,
    TripleRef,
};

/// A statement, its terms as they are written in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Statement<'a> {
    /// The subject: `<iri>` or `_:label`.
    pub subject: &'a [u8],
    /// The predicate, an IRI in brackets: `<iri>`.
    pub predicate: &'a [u8],
    /// The object: `<iri>`, `_:label` or a literal.
    pub object: &'a [u8],
}

/// A line that is not a statement as this crate writes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: {fault}\n  help: read it with a reader of N-Triples, and write it with `write_statement`"
)]
pub struct StatementError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The part that is expected at the fault.
    pub fault: &'static str,
}

/// A term with its escapes resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermText<'a> {
    /// An IRI, without its brackets.
    Iri(Cow<'a, str>),
    /// A blank node: its label without `_:`.
    Blank(&'a str),
    /// A literal with its language or datatype.
    Literal {
        /// The lexical form, without quotes.
        value: Cow<'a, str>,
        /// The language tag, as it is written.
        language: Option<&'a str>,
        /// The datatype, if it is written: neither of a language-tagged string nor `xsd:string`.
        datatype: Option<Cow<'a, str>>,
    },
}

impl<'a> Statement<'a> {
    /// Splits a line without its line feed into three terms.
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::{Statement, TermText};
    ///
    /// let line = br#"<http://h/7> <http://h/title> "A \"new\" atlas"@en ."#;
    /// let statement = Statement::parse(line)?;
    /// assert_eq!(statement.subject, b"<http://h/7>");
    /// let Some(TermText::Literal { value, language, .. }) = TermText::parse(statement.object) else {
    ///     unreachable!("the object is a literal")
    /// };
    /// assert_eq!((&*value, language), ("A \"new\" atlas", Some("en")));
    /// # Ok::<(), &str>(())
    /// ```
    ///
    /// # Errors
    /// The expected form, if the line is not `subject predicate object .` with one space between
    /// them. Escapes inside of terms are not checked.
    pub fn parse(line: &'a [u8]) -> Result<Self, &'static str> {
        let (subject, rest) = match line.first() {
            Some(b'<') => split_iri(line).ok_or("the IRI of the subject has no `>`")?,
            Some(b'_') => split_label(line).ok_or("the subject is not `_:` and a label")?,
            _ => return Err("a statement starts with `<` or `_:`"),
        };
        let rest = rest.strip_prefix(b" ").ok_or("one space follows the subject")?;
        let (predicate, rest) = match rest.first() {
            Some(b'<') => split_iri(rest).ok_or("the IRI of the predicate has no `>`")?,
            _ => return Err("the predicate is an IRI in `<` and `>`"),
        };
        let rest = rest.strip_prefix(b" ").ok_or("one space follows the predicate")?;
        let object = rest.strip_suffix(b" .").ok_or("a statement ends with ` .`")?;
        let is_term = match object.first() {
            Some(b'<') => split_iri(object).is_some_and(|(_, rest)| rest.is_empty()),
            Some(b'_') => split_label(object).is_some_and(|(_, rest)| rest.is_empty()),
            Some(b'"') => literal_parts(object).is_some(),
            _ => false,
        };
        if is_term { Ok(Self { subject, predicate, object }) } else { Err("the object is no term") }
    }

    /// Appends the statement and a line feed.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.subject.len() + self.predicate.len() + self.object.len() + 5);
        out.extend_from_slice(self.subject);
        out.push(b' ');
        out.extend_from_slice(self.predicate);
        out.push(b' ');
        out.extend_from_slice(self.object);
        out.extend_from_slice(b" .\n");
    }

    /// Whether subject or object is a blank node.
    pub fn has_blank(&self) -> bool {
        is_blank(self.subject) || is_blank(self.object)
    }

    /// The statement as terms of `oxrdf`; `None` if a term is invalid.
    pub fn to_triple(&self) -> Option<Triple> {
        let subject: NamedOrBlankNode = match TermText::parse(self.subject)? {
            TermText::Iri(iri) => NamedNode::new(iri).ok()?.into(),
            TermText::Blank(label) => BlankNode::new(label).ok()?.into(),
            TermText::Literal { .. } => return None,
        };
        let TermText::Iri(predicate) = TermText::parse(self.predicate)? else { return None };
        let predicate = NamedNode::new(predicate).ok()?;
        Some(match TermText::parse(self.object)? {
            TermText::Iri(iri) => Triple::new(subject, predicate, NamedNode::new(iri).ok()?),
            TermText::Blank(label) => Triple::new(subject, predicate, BlankNode::new(label).ok()?),
            TermText::Literal { value, language: Some(language), .. } => {
                if !is_language_tag(language) {
                    return None;
                }
                let literal = Literal::new_language_tagged_literal_unchecked(value, language);
                Triple::new(subject, predicate, literal)
            }
            TermText::Literal { value, datatype: Some(datatype), .. } => {
                let datatype = NamedNode::new(datatype).ok()?;
                Triple::new(subject, predicate, Literal::new_typed_literal(value, datatype))
            }
            TermText::Literal { value, .. } => {
                Triple::new(subject, predicate, Literal::new_simple_literal(value))
            }
        })
    }
}

impl<'a> TermText<'a> {
    /// Parses a written term; `None` if it is invalid.
    pub fn parse(term: &'a [u8]) -> Option<Self> {
        let text = str::from_utf8(term).ok()?;
        match term.first()? {
            b'<' => Some(Self::Iri(resolve_escapes(text.strip_prefix('<')?.strip_suffix('>')?)?)),
            b'_' => Some(Self::Blank(text.strip_prefix("_:")?)),
            b'"' => {
                let (value, suffix) = literal_parts(term)?;
                let value = resolve_escapes(str::from_utf8(value).ok()?)?;
                let suffix = str::from_utf8(suffix).ok()?;
                let datatype =
                    suffix.strip_prefix("^^<").and_then(|datatype| datatype.strip_suffix('>'));
                let datatype = match datatype {
                    Some(datatype) => Some(resolve_escapes(datatype)?),
                    None => None,
                };
                Some(Self::Literal { value, language: suffix.strip_prefix('@'), datatype })
            }
            _ => None,
        }
    }
}

/// The statements of canonical N-Triples, one for each line.
///
/// # Examples
/// ```
/// use abreast_rdf::statements;
///
/// let lines = b"<http://h/7> <http://h/title> \"Atlas\" .\n<http://h/7> <http://h/title> Atlas .\n";
/// let faults: Vec<_> = statements(lines).filter_map(Result::err).collect();
/// assert_eq!(faults.len(), 1);
/// assert_eq!(faults[0].line, 2);
/// ```
///
/// # Errors
/// Each line that is not a statement as this crate writes it.
pub fn statements(lines: &[u8]) -> impl Iterator<Item = Result<Statement<'_>, StatementError>> {
    split_lines(lines).enumerate().map(|(number, line)| {
        Statement::parse(line).map_err(|fault| StatementError { line: number + 1, fault })
    })
}

/// Whether this is a well-formed language tag [rdf11-concepts §3.3].
///
/// # Examples
/// ```
/// use abreast_rdf::is_language_tag;
///
/// assert!(is_language_tag("de-AT") && !is_language_tag("de AT"));
/// ```
pub fn is_language_tag(text: &str) -> bool {
    LanguageTag::parse(text).is_ok()
}

/// Lines without their line feeds; the last line need not have one.
pub(crate) fn split_lines(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(line)
    })
}

/// Whether a written term is a blank node.
pub(crate) fn is_blank(term: &[u8]) -> bool {
    term.first() == Some(&b'_')
}

fn split_iri(text: &[u8]) -> Option<(&[u8], &[u8])> {
    Some(text.split_at(memchr(b'>', text)? + 1))
}

fn split_label(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let label = text.strip_prefix(b"_:")?;
    let length = memchr(b' ', label).unwrap_or(label.len());
    (length > 0).then(|| text.split_at(length + 2))
}

/// The content between the quotes, and the rest: empty, `@tag` or `^^<iri>`.
fn literal_parts(term: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = term.strip_prefix(b"\"")?;
    let mut from = 0;
    let end = loop {
        let quote = from + memchr(b'"', &inside[from..])?;
        let escapes = inside[..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        if escapes % 2 == 0 {
            break quote;
        }
        from = quote + 1;
    };
    let suffix = &inside[end + 1..];
    let is_suffix = match suffix.first() {
        None => true,
        Some(b'@') => {
            suffix.len() > 1
                && suffix[1..].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        }
        Some(_) => suffix
            .strip_prefix(b"^^")
            .filter(|iri| iri.first() == Some(&b'<'))
            .and_then(split_iri)
            .is_some_and(|(_, rest)| rest.is_empty()),
    };
    is_suffix.then_some((&inside[..end], suffix))
}

/// Resolves escapes such as `\t` and `\u0041`; `None` for an invalid escape.
fn resolve_escapes(text: &str) -> Option<Cow<'_, str>> {
    if memchr(b'\\', text.as_bytes()).is_none() {
        return Some(Cow::Borrowed(text));
    }
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        resolved.push_str(&rest[..at]);
        let code = rest[at + 1..].chars().next()?;
        rest = &rest[at + 1 + code.len_utf8()..];
        resolved.push(match code {
            't' => '\t',
            'b' => '\u{8}',
            'n' => '\n',
            'r' => '\r',
            'f' => '\u{C}',
            '"' | '\'' | '\\' => code,
            'u' | 'U' => {
                let digits = rest.get(..if code == 'u' { 4 } else { 8 })?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                rest = &rest[digits.len()..];
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            _ => return None,
        });
    }
    resolved.push_str(rest);
    Some(Cow::Owned(resolved))
}

/// Whether a text is an absolute IRI [rfc3987 §2.2].
///
/// # Examples
/// ```
/// use abreast_rdf::is_iri;
///
/// assert!(is_iri("urn:isbn:9780262510875"));
/// assert!(!is_iri("objects/17"));
/// assert!(!is_iri("https://museum.example/objects/17 (copy)"));
/// ```
pub fn is_iri(text: &str) -> bool {
    oxrdf::NamedNode::new(text).is_ok()
}

/// Appends one statement and a line feed. Labels of blank nodes are written as they are.
///
/// # Examples
/// ```
/// use abreast_rdf::write_statement;
/// use oxrdf::{Literal, NamedNode, Triple};
///
/// let triple = Triple::new(
///     NamedNode::new("http://h/7")?,
///     NamedNode::new("http://purl.org/dc/terms/title")?,
///     Literal::from("Atlas"),
/// );
/// let mut lines = Vec::new();
/// write_statement(triple.as_ref(), &mut lines);
/// assert_eq!(lines, b"<http://h/7> <http://purl.org/dc/terms/title> \"Atlas\" .\n");
/// # Ok::<(), oxrdf::IriParseError>(())
/// ```
pub fn write_statement(triple: TripleRef<'_>, out: &mut Vec<u8>) {
    write_terms(triple, out);
}

/// Writes a statement, and returns the ends of subject and predicate.
pub(crate) fn write_terms(triple: TripleRef<'_>, out: &mut Vec<u8>) -> (usize, usize) {
    match triple.subject {
        NamedOrBlankNodeRef::NamedNode(node) => write_iri(node.as_str(), out),
        NamedOrBlankNodeRef::BlankNode(node) => write_blank(node.as_str(), out),
    }
    let subject_end = out.len();
    out.push(b' ');
    write_iri(triple.predicate.as_str(), out);
    let predicate_end = out.len();
    out.push(b' ');
    match triple.object {
        TermRef::NamedNode(node) => write_iri(node.as_str(), out),
        TermRef::BlankNode(node) => write_blank(node.as_str(), out),
        TermRef::Literal(literal) => {
            out.push(b'"');
            write_escaped(literal.value(), out);
            out.push(b'"');
            if let Some(language) = literal.language() {
                out.push(b'@');
                out.extend_from_slice(language.as_bytes());
            } else if literal.datatype() != xsd::STRING {
                out.extend_from_slice(b"^^");
                write_iri(literal.datatype().as_str(), out);
            }
        }
    }
    out.extend_from_slice(b" .\n");
    (subject_end, predicate_end)
}

fn write_blank(label: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"_:");
    out.extend_from_slice(label.as_bytes());
}

/// Escapes characters that an IRI cannot contain, so that none ends the line or the term.
pub(crate) fn write_iri(iri: &str, out: &mut Vec<u8>) {
    out.push(b'<');
    let mut from = 0;
    for (at, byte) in iri.bytes().enumerate().filter(|(_, byte)| !is_iri_byte(*byte)) {
        out.extend_from_slice(&iri.as_bytes()[from..at]);
        write_code(u32::from(byte), out);
        from = at + 1;
    }
    out.extend_from_slice(&iri.as_bytes()[from..]);
    out.push(b'>');
}

/// Whether `IRIREF` of N-Triples, Turtle and SPARQL may contain the byte unescaped.
pub(crate) fn is_iri_byte(byte: u8) -> bool {
    !matches!(byte, 0..=0x20 | b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\')
}

fn write_escaped(value: &str, out: &mut Vec<u8>) {
    let bytes = value.as_bytes();
    let mut from = 0;
    // The first byte of U+FFFE and U+FFFF is 0xEF.
    let special = |byte: u8| matches!(byte, 0..=0x1F | b'"' | b'\\' | 0x7F | 0xEF);
    for (at, byte) in bytes.iter().copied().enumerate().filter(|(_, byte)| special(*byte)) {
        let (length, code) = match byte {
            0xEF if bytes[at..].starts_with(b"\xEF\xBF\xBE") => (3, 0xFFFE),
            0xEF if bytes[at..].starts_with(b"\xEF\xBF\xBF") => (3, 0xFFFF),
            0xEF => continue,
            _ => (1, u32::from(byte)),
        };
        out.extend_from_slice(&bytes[from..at]);
        from = at + length;
        match byte {
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            _ => write_code(code, out),
        }
    }
    out.extend_from_slice(&bytes[from..]);
}

fn write_code(code: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\\u{code:04X}").as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(triple: &Triple) -> String {
        let mut out = Vec::new();
        write_statement(triple.as_ref(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn iri(text: &str) -> NamedNode {
        NamedNode::new(text).unwrap()
    }

    #[test]
    fn control_characters_and_quotes_are_escaped() {
        let value = "\u{0}\u{8}\t\n\u{B}\u{C}\r\u{1F} \"\\'\u{7F}\u{80}é\u{FFFD}\u{FFFE}\u{FFFF}";
        let triple = Triple::new(iri("http://e/s"), iri("http://e/p"), Literal::from(value));
        assert_eq!(
            written(&triple),
            "<http://e/s> <http://e/p> \"\\u0000\\b\\t\\n\\u000B\\f\\r\\u001F \\\"\\\\'\\u007F\u{80}é\u{FFFD}\\uFFFE\\uFFFF\" .\n"
        );
    }

    #[test]
    fn an_iri_with_illegal_characters_stays_one_term() {
        let hostile = NamedNode::new_unchecked("http://e/> <x> \"\n");
        let triple = Triple::new(hostile.clone(), hostile.clone(), hostile);
        let line = written(&triple);
        assert_eq!(line.matches('\n').count(), 1);
        let statement = Statement::parse(line.trim_end().as_bytes()).unwrap();
        assert_eq!(statement.subject, br"<http://e/\u003E\u0020\u003Cx\u003E\u0020\u0022\u000A>");
        assert_eq!(
            TermText::parse(statement.object),
            Some(TermText::Iri("http://e/> <x> \"\n".into()))
        );
    }

    #[test]
    fn a_line_that_is_not_canonical_is_refused_with_its_number() {
        let good = "<http://e/s> <http://e/p> \"a \\\" b\"@en .\n";
        for (line, fault) in [
            ("", "a statement starts with `<` or `_:`"),
            ("# comment", "a statement starts with `<` or `_:`"),
            ("<s", "the IRI of the subject has no `>`"),
            ("_: <p> <o> .", "the subject is not `_:` and a label"),
            ("<s>  <p> <o> .", "the predicate is an IRI in `<` and `>`"),
            ("<s> _:p <o> .", "the predicate is an IRI in `<` and `>`"),
            ("<s> <p> <o>.", "a statement ends with ` .`"),
            ("<s> <p> <o> <g> .", "the object is no term"),
            ("<s> <p> \"a .", "the object is no term"),
            ("<s> <p> \"a\\\" .", "the object is no term"),
            ("<s> <p> \"a\"@ .", "the object is no term"),
            ("<s> <p> \"a\"^^<d> <g> .", "the object is no term"),
            ("<s> <p> _:a _:b .", "the object is no term"),
        ] {
            let text = format!("{good}{line}\n");
            let error = statements(text.as_bytes()).find_map(Result::err).unwrap();
            assert_eq!(error, StatementError { line: 2, fault }, "{line}");
        }
    }

    #[test]
    fn escapes_that_do_not_exist_are_refused() {
        for term in [r#""\x""#, r#""\u12""#, r#""\uD800""#, r#""\U00110000""#, r#""\u+123""#] {
            assert_eq!(TermText::parse(term.as_bytes()), None, "{term}");
        }
    }

    proptest! {
        #[test]
        fn any_literal_is_one_line_and_reads_back(value: String, kind in 0..3_u8) {
            let literal = match kind {
                0 => Literal::from(value.as_str()),
                1 => Literal::new_language_tagged_literal(&value, "en-GB").unwrap(),
                _ => Literal::new_typed_literal(&value, iri("http://e/d")),
            };
            let triple = Triple::new(iri("http://e/s"), iri("http://e/p"), literal);
            let line = written(&triple);
            prop_assert_eq!(line.matches('\n').count(), 1);
            let statement = Statement::parse(line.trim_end_matches('\n').as_bytes()).unwrap();
            prop_assert_eq!(statement.to_triple(), Some(triple.clone()));
            // The crate that defines the terms writes the same.
            prop_assert_eq!(line, format!("{triple} .\n"));
        }
    }
}
