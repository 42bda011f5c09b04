//! Why a patch cannot be read, and where it departs from the format.

use std::io;

/// A fault in a patch, or a departure from the format that the lenient reader accepted.
///
/// | code | what |
/// |---|---|
/// | `patch.row` | something that is not a row, or a row that does not end |
/// | `patch.commit` | the input ends within a transaction |
/// | `patch.transaction` | a row that is not where its transaction permits it |
/// | `patch.header` | a header that is not a word and a term, or comes after the first transaction |
/// | `patch.term` | something that is not a term, or that cannot be where it is |
/// | `patch.iri`, `patch.language`, `patch.blank`, `patch.string` | an IRI, a language tag, a label of a blank node or a string that is not well-formed |
/// | `patch.encoding` | text that is not UTF-8 |
/// | `patch.size` | a row, or a number of rows, above its limit |
/// | `patch.lines` | accepted when lenient: a row over several lines, or several rows on one line |
/// | `patch.dot` | accepted when lenient: no space before the dot, or no dot behind a header |
/// | `patch.quotes` | accepted when lenient: strings in `'` or in three quotes |
/// | `patch.number` | accepted when lenient: numbers and truth values without quotes |
/// | `patch.prefix` | accepted when lenient: names with a prefix that a `PA` row above declares |
/// | `patch.keyword` | accepted when lenient: `TB` for `TX`, and `Segment` |
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}, column {column}: {message}{}",
    help.map(|help| format!("\n  help: {help}")).unwrap_or_default()
)]
pub struct Finding {
    pub(crate) code: &'static str,
    pub(crate) line: u64,
    pub(crate) column: u64,
    pub(crate) message: String,
    pub(crate) help: Option<&'static str>,
}

impl Finding {
    /// A stable code: programs match on it, wording may change.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Line of the fault, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> u64 {
        self.column
    }

    /// Explanation of the fault, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How to correct it, when known.
    pub fn help(&self) -> Option<&'static str> {
        self.help
    }
}

/// A patch that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The patch is at fault.
    #[error(transparent)]
    Syntax(#[from] Finding),
    /// The input could not be read.
    #[error("cannot read the input")]
    Io(#[from] io::Error),
}

impl ReadError {
    /// The fault in the patch, if it is one.
    pub fn syntax(&self) -> Option<&Finding> {
        match self {
            Self::Syntax(finding) => Some(finding),
            Self::Io(_) => None,
        }
    }
}
