//! Reading a document from a file or a pipe: the parser with blocking input.

use super::{Finding, Limits, Parser, Step, Tolerance, Version};
use abreast_webtypes::SyntaxError as Error;
use std::io::{self, Read};
use thiserror::Error as ThisError;

/// Bytes requested from the input at a time.
const CHUNK: usize = 64 * 1_024;

/// The reason why reading failed: an invalid document, or a failed input.
#[derive(Debug, ThisError)]
pub enum ReadError {
    /// The document does not follow the specification.
    #[error(transparent)]
    Syntax(#[from] Error),
    /// The input could not be read.
    #[error("cannot read the document")]
    Io(#[from] io::Error),
}

/// Reads a document entry by entry from a file or a pipe, in memory for one entry.
///
/// # Examples
/// ```
/// use abreast_resourcesync::v1_1::{Change, Entry, Reader};
///
/// let change_list = r#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
///   xmlns:rs="http://www.openarchives.org/rs/terms/">
///   <rs:md capability="changelist" from="2026-03-01T00:00:00Z"/>
///   <url><loc>https://repo.example/item/1.pdf</loc><rs:md change="updated"/></url>
///   <url><loc>https://repo.example/item/2.pdf</loc><rs:md change="deleted"/></url>
/// </urlset>"#;
/// let mut reader = Reader::new(change_list.as_bytes());
/// let (mut entry, mut deleted) = (Entry::default(), Vec::new());
/// while reader.next(&mut entry)? {
///     if entry.change == Some(Change::Deleted) {
///         deleted.push(entry.loc.clone());
///     }
/// }
/// assert_eq!(deleted, ["https://repo.example/item/2.pdf"]);
/// # Ok::<(), abreast_resourcesync::v1_1::ReadError>(())
/// ```
pub struct Reader<R, V: Version> {
    input: R,
    parser: Parser<V>,
    buffer: Vec<u8>,
    done: bool,
}

impl<R: Read, V: Version> Reader<R, V> {
    /// Reads with the default [`Limits`]; the input need not be buffered.
    pub fn new(input: R) -> Self {
        Self::with_limits(input, Limits::default())
    }

    /// Reads within limits, with the usual tolerance.
    pub fn with_limits(input: R, limits: Limits) -> Self {
        Self::with_tolerance(input, limits, Tolerance::Usual)
    }

    /// Reads within limits, with the given tolerance.
    pub fn with_tolerance(input: R, limits: Limits, tolerance: Tolerance) -> Self {
        let parser = Parser::with_tolerance(limits, tolerance);
        Self { input, parser, buffer: vec![0; CHUNK], done: false }
    }

    /// The head of the document. It may be called at any time, and does not consume the first
    /// entry.
    ///
    /// # Examples
    /// ```
    /// use abreast_resourcesync::v1_1::{Capability, Reader};
    ///
    /// let list = r#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
    ///   xmlns:rs="http://www.openarchives.org/rs/terms/">
    ///   <rs:md capability="resourcelist" at="2026-03-01T00:00:00Z"/>
    /// </urlset>"#;
    /// let mut reader = Reader::new(list.as_bytes());
    /// assert_eq!(reader.head()?.capability, Some(Capability::ResourceList));
    /// # Ok::<(), abreast_resourcesync::v1_1::ReadError>(())
    /// ```
    ///
    /// # Errors
    /// The document has a fault in its head, or the input fails.
    pub fn head(&mut self) -> Result<&V::Head, ReadError> {
        if self.parser.head().is_none() {
            self.step(&mut V::Entry::default())?;
        }
        // The parser returns the head before it needs more input.
        Ok(self.parser.head_so_far())
    }

    /// Reads the next entry into `entry`, reusing its allocations; `false` at the end of the
    /// document.
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

    /// Whether there are more entries so far than the specification allows.
    pub fn over_spec_limit(&self) -> bool {
        self.parser.over_spec_limit()
    }

    /// Accepted deviations from the specification so far.
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
