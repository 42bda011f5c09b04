//! Reading a document from a file or a pipe: the parser with blocking input.

use super::{Finding, Limits, Parser, Step, Tolerance, Version};
use abreast_webtypes::SyntaxError as Error;
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
pub struct Reader<R, V: Version> {
    input: R,
    parser: Parser<V>,
    buffer: Vec<u8>,
    done: bool,
}

impl<R: Read, V: Version> Reader<R, V> {
    /// Reads with the default [`Limits`]; the input needs no buffer of its own.
    pub fn new(input: R) -> Self {
        Self::with_limits(input, Limits::default())
    }

    /// Reads within limits.
    pub fn with_limits(input: R, limits: Limits) -> Self {
        Self::with_tolerance(input, limits, Tolerance::Usual)
    }

    /// Reads within limits, by another tolerance than the usual one.
    pub fn with_tolerance(input: R, limits: Limits, tolerance: Tolerance) -> Self {
        let parser = Parser::with_tolerance(limits, tolerance);
        Self { input, parser, buffer: vec![0; CHUNK], done: false }
    }

    /// The head of the document. May be called at any time; it does not consume the first entry.
    ///
    /// # Errors
    /// The document is wrong up to there, or the input fails.
    pub fn head(&mut self) -> Result<&V::Head, ReadError> {
        if self.parser.head().is_none() {
            self.step(&mut V::Entry::default())?;
        }
        // The first step that needs no input is the head.
        Ok(self.parser.head_so_far())
    }

    /// Reads the next entry into `entry`, whose allocations are used again; `false` at the end of
    /// the document.
    ///
    /// # Errors
    /// See [`Parser::next`]; or the input fails.
    pub fn next(&mut self, entry: &mut V::Entry) -> Result<bool, ReadError> {
        while !self.done {
            match self.step(entry)? {
                Step::Entry => return Ok(true),
                Step::End => self.done = true,
                Step::Head | Step::NeedInput => {}
            }
        }
        *entry = V::Entry::default();
        Ok(false)
    }

    /// Whether there are more entries than a Sitemap may have, so far.
    pub fn over_spec_limit(&self) -> bool {
        self.parser.over_spec_limit()
    }

    /// Deviations from the specification that were accepted so far.
    pub fn findings(&self) -> &[Finding] {
        self.parser.findings()
    }

    fn step(&mut self, entry: &mut V::Entry) -> Result<Step, ReadError> {
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
