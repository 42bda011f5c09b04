//! Reading a document from a file or a pipe: the parser with blocking input.

use super::{Entry, Error, Head, Limits, Parser, Step};
use std::io::{self, Read};
use thiserror::Error as ThisError;

/// Bytes asked for at a time.
const CHUNK: usize = 64 * 1_024;

/// Why reading ended: their document is wrong, or our input failed.
#[derive(Debug, ThisError)]
pub enum ReadError {
    /// The document is wrong.
    #[error(transparent)]
    Syntax(#[from] Error),
    /// The input failed.
    #[error("cannot read the document")]
    Io(#[from] io::Error),
}

/// Reads a document entry by entry.
pub struct Reader<R> {
    input: R,
    parser: Parser,
    buffer: Vec<u8>,
    done: bool,
}

impl<R: Read> Reader<R> {
    /// Reads with the default [`Limits`]; the input needs no buffer of its own.
    pub fn new(input: R) -> Self {
        Self::with_limits(input, Limits::default())
    }

    /// Reads within limits.
    pub fn with_limits(input: R, limits: Limits) -> Self {
        Self { input, parser: Parser::new(limits), buffer: vec![0; CHUNK], done: false }
    }

    /// The head of the document. May be called at any time; it does not consume the first entry.
    ///
    /// # Errors
    /// The document is wrong up to there, or the input fails.
    pub fn head(&mut self) -> Result<&Head, ReadError> {
        if self.parser.head().is_none() {
            self.step(&mut Entry::default())?;
        }
        // The first step that needs no input is the head.
        Ok(self.parser.head_so_far())
    }

    /// Reads the next entry into `entry`, whose allocations are used again; `false` at the end of
    /// the document.
    ///
    /// # Errors
    /// See [`Parser::next`]; or the input fails.
    pub fn next(&mut self, entry: &mut Entry) -> Result<bool, ReadError> {
        while !self.done {
            match self.step(entry)? {
                Step::Entry => return Ok(true),
                Step::End => self.done = true,
                Step::Head | Step::NeedInput => {}
            }
        }
        entry.clear();
        Ok(false)
    }

    /// Whether there are more entries than a Sitemap may have, so far.
    pub fn over_spec_limit(&self) -> bool {
        self.parser.over_spec_limit()
    }

    fn step(&mut self, entry: &mut Entry) -> Result<Step, ReadError> {
        loop {
            match self.parser.next(entry)? {
                Step::NeedInput => match self.input.read(&mut self.buffer) {
                    Ok(0) => self.parser.finish(),
                    Ok(length) => self.parser.feed(&self.buffer[..length]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                },
                step => return Ok(step),
            }
        }
    }
}
