//! One row, taken apart.
//!
//! The text may end within the row: then the parser stops with [`Stop::More`], and the row is
//! parsed again with more text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::memchr;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term};

use crate::syntax::header::WORDS;
use crate::syntax::row::{Change, Row};

/// Something found at a place of the text.
pub(crate) struct Noted {
    pub(crate) at: usize,
    pub(crate) code: &'static str,
    pub(crate) message: Cow<'static, str>,
    pub(crate) help: Option<&'static str>,
}

/// Why a row is not parsed.
pub(crate) enum Stop {
    /// The text ends within the row, and the input may continue.
    More,
    /// The row has a fault.
    Fault(Noted),
}

pub(crate) type Parsed<T> = Result<T, Stop>;

pub(crate) struct RowParser<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) at: usize,
    /// Nothing follows the text.
    pub(crate) is_end: bool,
    pub(crate) is_lenient: bool,
    pub(crate) prefixes: &'a BTreeMap<String, String>,
    pub(crate) findings: Vec<Noted>,
    pub(crate) is_over_lines: bool,
}

pub(crate) fn fault<T>(
    at: usize,
    code: &'static str,
    message: impl Into<Cow<'static, str>>,
    help: Option<&'static str>,
) -> Parsed<T> {
    Err(Stop::Fault(Noted { at, code, message: message.into(), help }))
}

/// Whether a word needs no quotes.
pub(crate) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

const CODES: &str = "rows begin with H, TX, TC, TA, PA, PD, A or D";

impl<'a> RowParser<'a> {
    /// Parses the row at the start of the text, and moves to the end of its line. `None` for
    /// `Segment` of Apache Jena, which has no effect.
    pub(crate) fn row(&mut self) -> Parsed<Option<Row>> {
        let start = self.at;
        let code = self.word()?;
        let row = match code {
            b"A" => Row::Change(Change::Add(self.quad()?)),
            b"D" => Row::Change(Change::Remove(self.quad()?)),
            b"TX" => Row::Begin,
            b"TC" => Row::Commit,
            b"TA" => Row::Abort,
            b"H" => {
                let header = self.header()?;
                self.end_of_header()?;
                return Ok(Some(header));
            }
            b"PA" => {
                let prefix = self.prefix()?;
                let iri = self.prefix_iri()?;
                Row::Change(Change::AddPrefix { prefix, iri })
            }
            b"PD" => Row::Change(Change::RemovePrefix { prefix: self.prefix()? }),
            b"TB" if self.is_lenient => {
                self.accept(start, "patch.keyword", "`TB` in place of `TX`", "write `TX .`")?;
                Row::Begin
            }
            b"Segment" if self.is_lenient => {
                let help = "leave `Segment` out: it has no effect";
                self.accept(start, "patch.keyword", "a row `Segment`", help)?;
                self.end()?;
                return Ok(None);
            }
            b"TB" => {
                return fault(
                    start,
                    "patch.keyword",
                    "`TB` in place of `TX`",
                    Some("write `TX .`"),
                );
            }
            _ => return fault(start, "patch.row", "not a row of RDF Patch", Some(CODES)),
        };
        self.end()?;
        Ok(Some(row))
    }

    /// Records a fault under the strict rules.
    pub(crate) fn accept(
        &mut self,
        at: usize,
        code: &'static str,
        message: &'static str,
        help: &'static str,
    ) -> Parsed<()> {
        if !self.is_lenient {
            return fault(at, code, message, Some(help));
        }
        let message = message.into();
        self.findings.push(Noted { at, code, message, help: Some(help) });
        Ok(())
    }

    /// The next byte; `None` at the end of the input.
    pub(crate) fn peek(&self) -> Parsed<Option<u8>> {
        match self.text.get(self.at) {
            Some(byte) => Ok(Some(*byte)),
            None if self.is_end => Ok(None),
            None => Err(Stop::More),
        }
    }

    /// Skips the space between two tokens; whether there is any.
    fn gap(&mut self) -> Parsed<bool> {
        let start = self.at;
        loop {
            match self.peek()? {
                Some(b' ' | b'\t') => self.at += 1,
                Some(byte @ (b'\n' | b'\r' | b'#')) => {
                    if !self.is_over_lines {
                        let help = "write each row on one line, with ` .` at its end";
                        self.accept(
                            self.at,
                            "patch.lines",
                            "the row does not end on its line",
                            help,
                        )?;
                        self.is_over_lines = true;
                    }
                    if byte == b'#' { self.skip_line()? } else { self.at += 1 }
                }
                _ => return Ok(self.at > start),
            }
        }
    }

    /// Moves to the end of the line.
    fn skip_line(&mut self) -> Parsed<()> {
        match memchr(b'\n', &self.text[self.at..]) {
            Some(length) => self.at += length,
            None if self.is_end => self.at = self.text.len(),
            None => return Err(Stop::More),
        }
        Ok(())
    }

    /// The dot, and nothing behind it on the line.
    fn end(&mut self) -> Parsed<()> {
        let has_gap = self.gap()?;
        if self.peek()? != Some(b'.') {
            let message = match self.peek()? {
                None => "the input ends within a row",
                Some(_) => "expected the `.` that ends the row",
            };
            return fault(self.at, "patch.row", message, None);
        }
        if !has_gap {
            let help = "write a space before the `.`";
            self.accept(self.at, "patch.dot", "no space before the `.`", help)?;
        }
        self.at += 1;
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                None | Some(b'\n') => return Ok(()),
                Some(b'#') => return self.skip_line(),
                Some(_) => {
                    let help = "write each row on a line of its own";
                    return self.accept(self.at, "patch.lines", "two rows on one line", help);
                }
            }
        }
    }

    /// The end of a header, which some programs write without its dot.
    fn end_of_header(&mut self) -> Parsed<()> {
        let rest = &self.text[self.at..];
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let of_line = rest.iter().position(|byte| !is_blank(byte));
        let next = rest.iter().position(|byte| !byte.is_ascii_whitespace());
        match (of_line, next) {
            _ if !self.is_lenient => self.end(),
            (_, None) if !self.is_end => Err(Stop::More),
            (Some(of_line), Some(next))
                if matches!(rest[of_line], b'\r' | b'\n') && rest[next] != b'.' =>
            {
                let help = "write ` .` at the end of each row";
                self.accept(self.at, "patch.dot", "a header without the `.` at its end", help)?;
                self.at += of_line;
                Ok(())
            }
            _ => self.end(),
        }
    }

    /// Letters, digits, `_` and `-`.
    pub(crate) fn word(&mut self) -> Parsed<&'a [u8]> {
        let rest = &self.text[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        if length == rest.len() && !self.is_end {
            return Err(Stop::More);
        }
        self.at += length;
        Ok(&rest[..length])
    }

    fn header(&mut self) -> Parsed<Row> {
        self.gap()?;
        let start = self.at;
        let mut word = match self.peek()? {
            Some(b'"' | b'\'') => self.string()?,
            _ => String::from_utf8_lossy(self.word()?).into_owned(),
        };
        if word.is_empty() {
            let help = "write `H word term .`";
            return fault(start, "patch.header", "a header without a word", Some(help));
        }
        if self.is_lenient
            && !WORDS.contains(&word.as_str())
            && let Some(known) = WORDS.iter().find(|known| known.eq_ignore_ascii_case(&word))
        {
            let help = "write `id` and `prev` in small letters";
            self.accept(start, "patch.header", "a header in capital letters", help)?;
            word = String::from(*known);
        }
        self.gap()?;
        Ok(Row::Header { word, value: self.term()? })
    }

    fn prefix(&mut self) -> Parsed<String> {
        self.gap()?;
        let start = self.at;
        let prefix = if let Some(b'"' | b'\'') = self.peek()? {
            self.string()?
        } else {
            let name = self.name()?;
            match name.strip_suffix(':') {
                Some(prefix) => {
                    let help = "write the prefix without `:`";
                    self.accept(start, "patch.prefix", "a prefix with its colon", help)?;
                    prefix.to_owned()
                }
                None if name.is_empty() => {
                    let help = "write `PA prefix <iri> .` or `PD prefix .`";
                    return fault(start, "patch.prefix", "a prefix is missing", Some(help));
                }
                None => name.to_owned(),
            }
        };
        let may_contain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\u{B7}');
        if prefix.chars().all(may_contain) {
            return Ok(prefix);
        }
        fault(start, "patch.prefix", "a prefix has characters that none may have", None)
    }

    /// The IRI of a prefix: an IRI, or a string that contains an IRI.
    fn prefix_iri(&mut self) -> Parsed<String> {
        self.gap()?;
        let start = self.at;
        let node = match self.term()? {
            Term::NamedNode(node) => Some(node),
            Term::Literal(literal) => NamedNode::new(literal.value()).ok(),
            Term::BlankNode(_) => None,
        };
        match node {
            Some(node) => Ok(node.into_string()),
            None => fault(start, "patch.iri", "a prefix stands for an absolute IRI", None),
        }
    }

    fn quad(&mut self) -> Parsed<Quad> {
        self.gap()?;
        let start = self.at;
        let subject: NamedOrBlankNode = match self.term()? {
            Term::NamedNode(node) => node.into(),
            Term::BlankNode(node) => node.into(),
            Term::Literal(_) => {
                return fault(start, "patch.term", "a literal cannot be a subject", None);
            }
        };
        self.gap()?;
        let start = self.at;
        let Term::NamedNode(predicate) = self.term()? else {
            return fault(start, "patch.term", "a predicate is an IRI", None);
        };
        self.gap()?;
        let object = self.term()?;
        let end = self.at;
        self.gap()?;
        let start = self.at;
        let graph = match self.peek()? {
            Some(b'.') | None => {
                // The dot is checked with the space before it.
                self.at = end;
                GraphName::DefaultGraph
            }
            Some(_) => match self.term()? {
                Term::NamedNode(node) => node.into(),
                Term::BlankNode(node) => node.into(),
                Term::Literal(_) => {
                    return fault(start, "patch.term", "a literal cannot be a graph", None);
                }
            },
        };
        Ok(Quad::new(subject, predicate, object, graph))
    }
}
