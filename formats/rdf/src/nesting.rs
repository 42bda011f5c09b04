//! Limits that the parsers do not have: brackets inside each other, and the length of a token.

use crate::read::{ReadLimits, fill};
use abreast_webtypes::SyntaxError;
use memchr::{memchr_iter, memrchr};
use std::io::{self, Read};

/// Follows a document from bracket to bracket.
#[derive(Debug)]
pub(crate) struct Brackets {
    is_json: bool,
    limits: ReadLimits,
    state: State,
    depth: usize,
    /// Bytes of the token in hand.
    token: usize,
    /// Whole lines before, and characters of this one.
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
    /// One quote was read, or two.
    Opening(u8),
    Opened(u8),
    Text(u8),
    TextEscape(u8),
    /// Between three quotes; how many of the closing ones were read.
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
        Self { is_json, limits, state: State::Plain, depth: 0, token: 0, line: 0, column: 0 }
    }

    /// Reads on.
    ///
    /// # Errors
    /// Too deep, or a token too long.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<(), SyntaxError> {
        for (at, byte) in piece.iter().enumerate() {
            self.state = self.next(*byte);
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

    /// Line and column, from 1, behind this much of a piece.
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

    fn next(&mut self, byte: u8) -> State {
        match self.state {
            State::Escape => State::Plain,
            State::Comment if matches!(byte, b'\n' | b'\r') => State::Plain,
            State::Comment => State::Comment,
            State::Iri if byte == b'>' => State::Plain,
            State::Iri => State::Iri,
            State::Opening(quote) if byte == quote => {
                if self.is_json {
                    State::Plain
                } else {
                    State::Opened(quote)
                }
            }
            State::Opened(quote) if byte == quote => State::Long(quote, 0),
            State::Plain | State::Opened(_) => self.plain(byte),
            State::Opening(quote) | State::Text(quote) => match byte {
                b'\\' => State::TextEscape(quote),
                byte if byte == quote => State::Plain,
                _ => State::Text(quote),
            },
            State::TextEscape(quote) => State::Text(quote),
            State::Long(quote, 2) if byte == quote => State::Plain,
            State::Long(quote, closing) if byte == quote => State::Long(quote, closing + 1),
            State::Long(quote, _) if byte == b'\\' => State::LongEscape(quote),
            State::Long(quote, _) | State::LongEscape(quote) => State::Long(quote, 0),
        }
    }

    fn plain(&mut self, byte: u8) -> State {
        match byte {
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

/// An input that fails where a limit is exceeded, and fills buffers as far as it can.
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
        // Short reads would make the parser search an unfinished token again and again.
        let filled = fill(&mut self.input, buffer)?;
        self.brackets.feed(&buffer[..filled]).map_err(io::Error::other)?;
        Ok(filled)
    }
}
