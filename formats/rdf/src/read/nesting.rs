//! Limits that the parsers lack: nested brackets, and the length of a token. Also records the
//! language tags that the parsers do not return as written.

use crate::read::input::fill;
use crate::read::language_tags::LanguageTags;
use crate::read::options::ReadLimits;
use abreast_webtypes::SyntaxError;
use memchr::{memchr_iter, memrchr};
use std::io::{self, Read};

/// Scans a document for brackets, tokens and language tags.
#[derive(Debug)]
pub(crate) struct Brackets {
    is_json: bool,
    limits: ReadLimits,
    state: State,
    /// Whether only white space and comments follow a string, so that a language tag may start.
    is_after_text: bool,
    tags: Option<LanguageTags>,
    depth: usize,
    /// Bytes of the current token.
    token: usize,
    /// Number of whole lines before, and of characters in the current line.
    line: u64,
    column: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Plain,
    /// After a backslash outside strings.
    Escape,
    Comment,
    Iri,
    /// In a language tag, or before its first byte.
    Tag,
    /// After one opening quote, or two.
    Opening(u8),
    Opened(u8),
    Text(u8),
    TextEscape(u8),
    /// Inside three quotes; the second number counts closing quotes.
    Long(u8, u8),
    LongEscape(u8),
}

impl Brackets {
    pub(crate) fn turtle(limits: ReadLimits) -> Self {
        Self::new(limits, false)
    }

    pub(crate) fn json(limits: ReadLimits) -> Self {
        Self::new(limits, true)
    }

    fn new(limits: ReadLimits, is_json: bool) -> Self {
        Self {
            is_json,
            limits,
            state: State::Plain,
            is_after_text: false,
            tags: None,
            depth: 0,
            token: 0,
            line: 0,
            column: 0,
        }
    }

    /// Enables the recording of language tags.
    pub(crate) fn with_tags(self, tags: LanguageTags) -> Self {
        Self { tags: Some(tags), ..self }
    }

    /// Scans the next piece.
    ///
    /// # Errors
    /// The nesting is too deep, or a token too long.
    pub(crate) fn feed(&mut self, piece: &mut [u8]) -> Result<(), SyntaxError> {
        for at in 0..piece.len() {
            let before = self.state;
            self.state = self.next(piece[at], piece.get(at + 1).copied());
            if let Some(tags) = &self.tags {
                match (before, self.state) {
                    (State::Tag, State::Tag) => tags.push(&mut piece[at]),
                    (State::Tag, _) if piece[at] == b':' && tags.may_be_name() => {
                        let message = "a name follows a language tag, or the tag has characters beyond ASCII: write white space between them";
                        return Err(SyntaxError::new(
                            "rdf.syntax",
                            self.place(&piece[..at]),
                            message.to_owned(),
                        ));
                    }
                    (State::Tag, _) => tags.end(|| self.place(&piece[..at])),
                    _ => {}
                }
            }
            if self.state == State::Plain {
                self.token = 0;
                if self.depth > self.limits.depth {
                    let message = format!("brackets are nested deeper than {}", self.limits.depth);
                    return Err(SyntaxError::new("rdf.depth", self.place(&piece[..at]), message));
                }
            } else {
                self.token += 1;
                if self.token > self.limits.token_length {
                    let message = format!(
                        "a literal, IRI or comment is longer than {} bytes",
                        self.limits.token_length
                    );
                    return Err(SyntaxError::new("rdf.size", self.place(&piece[..at]), message));
                }
            }
        }
        (self.line, self.column) = self.place(piece);
        self.line -= 1;
        self.column -= 1;
        Ok(())
    }

    /// Line and column, from 1, at the end of a piece.
    fn place(&self, piece: &[u8]) -> (u64, u64) {
        let characters =
            |text: &[u8]| text.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64;
        match memrchr(b'\n', piece) {
            None => (self.line + 1, self.column + characters(piece) + 1),
            Some(last) => (
                self.line + memchr_iter(b'\n', piece).count() as u64 + 1,
                characters(&piece[last + 1..]) + 1,
            ),
        }
    }

    /// The state after a byte; `following` is the next byte if it is known.
    fn next(&mut self, byte: u8, following: Option<u8>) -> State {
        match self.state {
            State::Tag if is_in_tag(byte) && (byte, following) != (b'_', Some(b':')) => State::Tag,
            State::Escape => State::Plain,
            State::Comment if matches!(byte, b'\n' | b'\r') => State::Plain,
            State::Comment => State::Comment,
            State::Iri if byte == b'>' => State::Plain,
            State::Iri => State::Iri,
            State::Opening(quote) if byte == quote => {
                if self.is_json {
                    State::Plain
                } else {
                    self.is_after_text = true;
                    State::Opened(quote)
                }
            }
            State::Opened(quote) if byte == quote => State::Long(quote, 0),
            State::Plain | State::Opened(_) | State::Tag => self.plain(byte),
            State::Opening(quote) | State::Text(quote) => match byte {
                b'\\' => State::TextEscape(quote),
                byte if byte == quote => self.text_ends(),
                _ => State::Text(quote),
            },
            State::TextEscape(quote) => State::Text(quote),
            State::Long(quote, 2) if byte == quote => self.text_ends(),
            State::Long(quote, closing) if byte == quote => State::Long(quote, closing + 1),
            State::Long(quote, _) if byte == b'\\' => State::LongEscape(quote),
            State::Long(quote, _) | State::LongEscape(quote) => State::Long(quote, 0),
        }
    }

    fn text_ends(&mut self) -> State {
        self.is_after_text = true;
        State::Plain
    }

    fn plain(&mut self, byte: u8) -> State {
        let may_be_tag = self.is_after_text && !self.is_json;
        self.is_after_text &= byte.is_ascii_whitespace() || byte == b'#';
        match byte {
            b'@' if may_be_tag => return State::Tag,
            b'[' | b'(' | b'{' => self.depth += 1,
            b']' | b')' | b'}' => self.depth = self.depth.saturating_sub(1),
            b'"' => return State::Opening(byte),
            _ if self.is_json => {}
            b'\'' => return State::Opening(byte),
            b'#' => return State::Comment,
            b'<' => return State::Iri,
            b'\\' => return State::Escape,
            _ => {}
        }
        State::Plain
    }
}

/// Whether a byte after the `@` of a string is part of the language tag, or of the text in its
/// place: any byte that neither ends the term nor starts another one.
const fn is_in_tag(byte: u8) -> bool {
    byte > b' '
        && !matches!(
            byte,
            b'.' | b',' | b';' | b'<' | b'>' | b'(' | b')' | b'[' | b']' | b'{' | b'}'
        )
        && !matches!(byte, b'"' | b'\'' | b'#' | b'^' | b'@' | b'|' | b'\\' | b':' | b'+')
}

/// An input that fails when a limit is exceeded, and fills buffers completely.
pub(crate) struct Guarded<R> {
    input: R,
    brackets: Brackets,
}

impl<R: Read> Guarded<R> {
    pub(crate) fn new(input: R, brackets: Brackets) -> Self {
        Self { input, brackets }
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // After short reads, the parser would search an unfinished token repeatedly.
        let filled = fill(&mut self.input, buffer)?;
        self.brackets.feed(&mut buffer[..filled]).map_err(io::Error::other)?;
        Ok(filled)
    }
}
