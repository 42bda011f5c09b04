//! Terms in rows: the terms of N-Quads, `<_:label>`, and for the lenient reader terms of Turtle.

use memchr::{memchr, memchr3};
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, Literal, NamedNode, Term};

use crate::syntax::row_parser::{Parsed, RowParser, Stop, fault};

/// Characters of a wrong language tag that are shown.
const TAG_SHOWN_MAX: usize = 60;

impl<'a> RowParser<'a> {
    pub(crate) fn term(&mut self) -> Parsed<Term> {
        match self.peek()? {
            Some(b'<') => self.iri_or_blank(),
            Some(b'"' | b'\'') => self.literal().map(Term::from),
            Some(b'_') => self.label().map(Term::from),
            Some(b'+' | b'-' | b'0'..=b'9') => self.number().map(Term::from),
            None => fault(self.at, "patch.row", "the input ends within a row", None),
            Some(b'.') => fault(self.at, "patch.term", "the row has too few terms", None),
            Some(_) => self.named_or_boolean(),
        }
    }

    /// `<iri>` or `<_:label>`.
    fn iri_or_blank(&mut self) -> Parsed<Term> {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let ends = |byte: &u8| matches!(byte, b'>' | b'<' | 0..=b' ');
        let Some(length) = rest.iter().position(ends) else {
            return self.cut(start, "patch.iri", "an IRI without its `>`");
        };
        if rest[length] != b'>' {
            let is_triple = rest[0] == b'<';
            let message = if is_triple {
                "statements about statements are not known"
            } else {
                "an IRI has a space, a control character or no `>`"
            };
            let code = if is_triple { "patch.term" } else { "patch.iri" };
            return fault(start, code, message, None);
        }
        let text = self.unescaped(start + 1, start + 1 + length, "patch.iri")?;
        self.at += length + 2;
        if let Some(label) = text.strip_prefix("_:") {
            if label.is_empty() {
                return fault(start, "patch.blank", "a blank node without a label", None);
            }
            // The label may have characters here that it cannot have without the brackets.
            return Ok(BlankNode::new_unchecked(label).into());
        }
        match NamedNode::new(text) {
            Ok(node) => Ok(node.into()),
            Err(error) => {
                let help = "IRIs are absolute, with other characters percent-encoded";
                fault(start, "patch.iri", format!("not an IRI: {error}"), Some(help))
            }
        }
    }

    /// `_:label`.
    fn label(&mut self) -> Parsed<BlankNode> {
        let start = self.at;
        let text = self.name()?;
        match text.strip_prefix("_:").and_then(|label| BlankNode::new(label).ok()) {
            Some(node) => Ok(node),
            None => fault(start, "patch.blank", "not a label of a blank node", None),
        }
    }

    fn literal(&mut self) -> Parsed<Literal> {
        let value = self.string()?;
        match self.peek()? {
            Some(b'@') => {
                let start = self.at;
                self.at += 1;
                let tag = self.tag()?;
                if Literal::new_language_tagged_literal("", &*tag).is_err() {
                    let tag = tag.chars().take(TAG_SHOWN_MAX).collect::<String>();
                    let message = format!("`{tag}` is not a language tag");
                    return fault(start, "patch.language", message, None);
                }
                // The tag is stored as written.
                Ok(Literal::new_language_tagged_literal_unchecked(value, tag))
            }
            Some(b'^') => {
                let start = self.at;
                match self.text.get(start + 1) {
                    Some(b'^') => {}
                    None if !self.is_end => return Err(Stop::More),
                    _ => return fault(start, "patch.term", "a datatype follows `^^`", None),
                }
                self.at += 2;
                let start = self.at;
                match self.term()? {
                    Term::NamedNode(datatype) => Ok(Literal::new_typed_literal(value, datatype)),
                    _ => fault(start, "patch.term", "a datatype is an IRI", None),
                }
            }
            _ => Ok(Literal::new_simple_literal(value)),
        }
    }

    /// What is written as a language tag, with characters that none may have.
    fn tag(&mut self) -> Parsed<String> {
        let start = self.at;
        loop {
            self.word()?;
            match self.text.get(self.at) {
                Some(byte) if !byte.is_ascii() => self.at += 1,
                _ => break,
            }
        }
        Ok(String::from_utf8_lossy(&self.text[start..self.at]).into_owned())
    }

    /// A string in quotes, its escapes resolved.
    pub(crate) fn string(&mut self) -> Parsed<String> {
        let start = self.at;
        let quote = self.text[start];
        if quote == b'\'' {
            let help = "write strings in `\"`";
            self.accept(start, "patch.quotes", "a string in `'`", help)?;
        }
        let is_long = match self.text.get(start..start + 3) {
            Some(quotes) => quotes.iter().all(|byte| *byte == quote),
            None if self.is_end => false,
            None => return Err(Stop::More),
        };
        if is_long {
            let help = "write strings in one `\"` on one line";
            self.accept(start, "patch.quotes", "a string in three quotes", help)?;
        }
        let from = start + if is_long { 3 } else { 1 };
        let mut at = from;
        loop {
            let next = if is_long {
                memchr::memchr2(quote, b'\\', &self.text[at..])
            } else {
                memchr3(quote, b'\\', b'\n', &self.text[at..])
            };
            let Some(next) = next else {
                return self.cut(start, "patch.string", "a string without its last quote");
            };
            at += next;
            match self.text[at] {
                b'\\' if at + 1 < self.text.len() => at += 2,
                b'\\' => return self.cut(start, "patch.string", "a string without its last quote"),
                b'\n' => {
                    let help = "write line feeds as `\\n`";
                    let message = "a string does not end on its line";
                    return fault(start, "patch.string", message, Some(help));
                }
                _ if !is_long => break,
                _ => match self.text.get(at..at + 3) {
                    Some(quotes) if quotes.iter().all(|byte| *byte == quote) => break,
                    Some(_) => at += 1,
                    None => {
                        return self.cut(start, "patch.string", "a string without its last quotes");
                    }
                },
            }
        }
        if !is_long && memchr(b'\r', &self.text[from..at]).is_some() {
            let help = "write carriage returns as `\\r`";
            return fault(start, "patch.string", "a carriage return in a string", Some(help));
        }
        let value = self.unescaped(from, at, "patch.string")?;
        self.at = at + (from - start);
        Ok(value)
    }

    /// `1816`, `-1.5`, `1e9`.
    fn number(&mut self) -> Parsed<Literal> {
        let start = self.at;
        let text = self.name()?;
        let is_number = text.ends_with(|c: char| c.is_ascii_digit())
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'))
            && text.parse::<f64>().is_ok();
        if !is_number {
            return fault(start, "patch.term", "not a term", None);
        }
        let help = "write the number in quotes, with its datatype";
        self.accept(start, "patch.number", "a number without quotes", help)?;
        let datatype = if text.contains(['e', 'E']) {
            xsd::DOUBLE
        } else if text.contains('.') {
            xsd::DECIMAL
        } else {
            xsd::INTEGER
        };
        Ok(Literal::new_typed_literal(text, datatype))
    }

    /// `true`, `false` or `prefix:name`.
    fn named_or_boolean(&mut self) -> Parsed<Term> {
        let start = self.at;
        let text = self.name()?;
        if matches!(text, "true" | "false") {
            let help = "write the value in quotes, with its datatype";
            self.accept(start, "patch.number", "a truth value without quotes", help)?;
            return Ok(Literal::new_typed_literal(text, xsd::BOOLEAN).into());
        }
        let Some((prefix, name)) = text.split_once(':') else {
            return fault(start, "patch.term", "not a term", None);
        };
        let help = "write the IRI in `<` and `>`";
        self.accept(start, "patch.prefix", "a name with a prefix", help)?;
        let Some(namespace) = self.prefixes.get(prefix) else {
            let message = format!("no row `PA` before declares the prefix `{}`", visible(prefix));
            return fault(start, "patch.prefix", message, Some(help));
        };
        match NamedNode::new(format!("{namespace}{}", without_escapes(name))) {
            Ok(node) => Ok(node.into()),
            Err(error) => fault(start, "patch.iri", format!("not an IRI: {error}"), Some(help)),
        }
    }

    /// Text to the next space, quote or bracket, without the dot that ends the row.
    pub(crate) fn name(&mut self) -> Parsed<&'a str> {
        let start = self.at;
        let rest = &self.text[start..];
        let ends = |byte: &u8| matches!(byte, 0..=b' ' | b'<' | b'>' | b'"' | b'\'');
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        if length == rest.len() && !self.is_end {
            return Err(Stop::More);
        }
        let mut name = &rest[..length];
        while let Some(shorter) = name.strip_suffix(b".") {
            name = shorter;
        }
        self.at += name.len();
        match str::from_utf8(name) {
            Ok(name) => Ok(name),
            Err(_) => fault(start, "patch.encoding", NOT_UTF8, None),
        }
    }

    /// The text ends within a term.
    fn cut<T>(&self, start: usize, code: &'static str, message: &'static str) -> Parsed<T> {
        if self.is_end { fault(start, code, message, None) } else { Err(Stop::More) }
    }

    /// The characters of an IRI or a string; IRIs have numeric escapes only.
    fn unescaped(&self, from: usize, to: usize, code: &'static str) -> Parsed<String> {
        let Ok(text) = str::from_utf8(&self.text[from..to]) else {
            return fault(from, "patch.encoding", NOT_UTF8, None);
        };
        if memchr(b'\\', text.as_bytes()).is_none() {
            return Ok(text.to_owned());
        }
        match resolved(text, code == "patch.string") {
            Some(text) => Ok(text),
            None => fault(from, code, "an escape that does not exist", None),
        }
    }
}

const NOT_UTF8: &str = "the text is not UTF-8";

fn resolved(text: &str, has_names: bool) -> Option<String> {
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        resolved.push_str(&rest[..at]);
        let code = rest[at + 1..].chars().next()?;
        rest = &rest[at + 1 + code.len_utf8()..];
        resolved.push(match code {
            'u' | 'U' => {
                let digits = rest.get(..if code == 'u' { 4 } else { 8 })?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                rest = &rest[digits.len()..];
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            _ if !has_names => return None,
            't' => '\t',
            'b' => '\u{8}',
            'n' => '\n',
            'r' => '\r',
            'f' => '\u{C}',
            '"' | '\'' | '\\' => code,
            _ => return None,
        });
    }
    resolved.push_str(rest);
    Some(resolved)
}

/// The local part of a prefixed name: `\` precedes characters that would end it.
fn without_escapes(name: &str) -> String {
    let mut characters = name.chars();
    let mut plain = String::with_capacity(name.len());
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}

/// At most 40 characters, control characters escaped.
fn visible(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}
