//! Errors of reading and writing.

use abreast_webtypes::SyntaxError;
use std::io;

/// The reason why a document cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The document has a fault.
    #[error("{}{message}", if url.is_empty() { String::new() } else { format!("{url}: ") })]
    Document {
        /// Address or path of the document; empty for bytes without an address.
        url: String,
        /// A stable code, such as `rs.loc`.
        code: &'static str,
        /// The fault with its line.
        message: String,
        /// A sentence with the remedy, if known.
        help: Option<&'static str>,
    },
    /// The network or the server failed.
    #[error(transparent)]
    Net(#[from] abreast_net::Error),
    /// A file or another input cannot be read.
    #[error("cannot read `{place}`")]
    Io {
        /// Path of the file that failed.
        place: String,
        /// The failure of the system.
        #[source]
        source: io::Error,
    },
    /// An entry cannot be written.
    #[error("entry {number}: {message}")]
    Entry {
        /// Number of the entry, from 1; 0 for the head of the document.
        number: u64,
        /// The field and its fault.
        message: String,
    },
    /// The caller stopped the reading.
    #[error("the reading was cancelled")]
    Cancelled,
}

impl Error {
    /// A stable code: programs match on it, wording may change.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Document { code, .. } => code,
            Self::Net(error) => error.code(),
            Self::Io { .. } => "io",
            Self::Entry { .. } => "entry",
            Self::Cancelled => "cancelled",
        }
    }

    /// A sentence with the remedy of the fault, if known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Document { help, .. } => *help,
            Self::Net(error) => error.help(),
            _ => None,
        }
    }

    /// A fault of the document as a whole.
    pub(crate) fn document(
        url: &str,
        code: &'static str,
        message: impl Into<String>,
        help: Option<&'static str>,
    ) -> Self {
        let url = abreast_webtypes::without_login(url).into_owned();
        Self::Document { url, code, message: message.into(), help }
    }

    /// A fault with its place in the document.
    pub(crate) fn syntax(url: &str, fault: &SyntaxError) -> Self {
        let message = match fault.line() {
            0 => fault.message().to_owned(),
            line => format!("line {line}, column {}: {}", fault.column(), fault.message()),
        };
        Self::document(url, fault.code(), message, fault.help())
    }

    /// A failure of the input; errors of this crate inside the failure are restored.
    pub(crate) fn input(url: &str, error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => error,
            Err(source) => {
                Self::Io { place: abreast_webtypes::without_login(url).into_owned(), source }
            }
        }
    }
}
