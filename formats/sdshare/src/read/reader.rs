//! Reading a feed from a file or a pipe: the parser with blocking input.

use crate::{Entry, Feed, Finding, Limits, Parser, Step};
use abreast_webtypes::SyntaxError as Error;
use std::io::{self, Read};
use thiserror::Error as ThisError;

/// Bytes requested from the input at a time.
const CHUNK: usize = 64 * 1_024;

/// The reason why reading failed: an invalid document, or a failed input.
#[derive(Debug, ThisError)]
pub enum ReadError {
    /// The document is not a readable feed.
    #[error(transparent)]
    Syntax(#[from] Error),
    /// The input could not be read.
    #[error("cannot read the feed")]
    Io(#[from] io::Error),
}

/// Reads a feed entry by entry from a file or a pipe, in memory for one entry.
///
/// # Examples
/// ```
/// use abreast_sdshare::{Entry, Limits, Reader};
///
/// let feed = r#"<feed xmlns="http://www.w3.org/2005/Atom" xmlns:s="http://www.sdshare.org/2012/core/">
///   <entry><s:resource>https://museum.example/objects/7</s:resource>
///     <updated>2026-03-01T09:00:00Z</updated>
///     <link rel="http://www.sdshare.org/2012/core/fragment" href="/fragments/7.ttl"/></entry>
/// </feed>"#;
/// let url = "https://museum.example/fragments";
/// let mut reader = Reader::new(feed.as_bytes(), url, Limits::default());
/// let mut entry = Entry::default();
/// assert!(reader.next(&mut entry)?);
/// assert_eq!(entry.resources, ["https://museum.example/objects/7"]);
/// assert!(!reader.next(&mut entry)?);
/// # Ok::<(), abreast_sdshare::ReadError>(())
/// ```
pub struct Reader<R> {
    input: R,
    parser: Parser,
    buffer: Vec<u8>,
    done: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the feed at an address; the input need not be buffered.
    pub fn new(input: R, base: impl Into<String>, limits: Limits) -> Self {
        Self { input, parser: Parser::new(base, limits), buffer: vec![0; CHUNK], done: false }
    }

    /// Reads the next entry into `entry`, reusing its allocations; `false` at the end of the feed.
    ///
    /// # Errors
    /// See [`Parser::next`]; or the input fails.
    pub fn next(&mut self, entry: &mut Entry) -> Result<bool, ReadError> {
        while !self.done {
            match self.parser.next(entry)? {
                Step::Entry => return Ok(true),
                Step::End => self.done = true,
                Step::NeedInput => match self.input.read(&mut self.buffer) {
                    Ok(0) => self.parser.finish(),
                    Ok(length) => self.parser.feed(&self.buffer[..length]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                },
            }
        }
        entry.clear();
        Ok(false)
    }

    /// The metadata of the feed; complete when [`Reader::next`] has returned `false`.
    pub fn head(&self) -> &Feed {
        self.parser.head()
    }

    /// Accepted deviations up to the last entry.
    pub fn findings(&self) -> &[Finding] {
        self.parser.findings()
    }
}
