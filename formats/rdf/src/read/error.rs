//! Errors while RDF is read.

use abreast_webtypes::SyntaxError;
use std::io;

/// The reason why a document cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The document is at fault: a stable code, line and column, and the way out.
    ///
    /// | code | refused |
    /// |---|---|
    /// | `rdf.syntax` | text that is not of the syntax |
    /// | `rdf.iri` | an IRI that is not absolute or has characters that none may have |
    /// | `rdf.language` | a language tag that is not well-formed |
    /// | `rdf.size` | a line, literal, name or document longer than its limit, or statements that are |
    /// | `rdf.depth` | brackets nested deeper than the limit |
    /// | `jsonld.context` | a context that was not given; none is ever fetched |
    /// | `xml.*` | XML that is refused: see [`abreast_webtypes::xml`] |
    ///
    /// The line is 0 if the parser does not report the position.
    #[error(transparent)]
    Syntax(SyntaxError),
    /// The input could not be read.
    #[error("cannot read the input")]
    Io(#[source] io::Error),
}

impl ReadError {
    pub(crate) fn new(
        code: &'static str,
        place: (u64, u64),
        message: impl Into<String>,
        help: Option<&'static str>,
    ) -> Self {
        let error = SyntaxError::new(code, place, message);
        Self::Syntax(match help {
            Some(help) => error.with_help(help),
            None => error,
        })
    }

    /// The fault in the document, unless the input failed.
    pub fn syntax(&self) -> Option<&SyntaxError> {
        match self {
            Self::Syntax(error) => Some(error),
            Self::Io(_) => None,
        }
    }
}

impl From<SyntaxError> for ReadError {
    fn from(error: SyntaxError) -> Self {
        Self::Syntax(error)
    }
}

impl From<io::Error> for ReadError {
    /// Restores a syntax error that a wrapped input reported as an I/O error.
    fn from(error: io::Error) -> Self {
        match error.downcast::<SyntaxError>() {
            Ok(fault) => Self::Syntax(fault),
            Err(error) => Self::Io(error),
        }
    }
}
