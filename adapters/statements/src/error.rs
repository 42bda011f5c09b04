//! Why statements cannot be read.

use std::io;

/// Statements cannot be read or sorted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The lines are not in byte order, or not canonical.
    #[error("line {line} is not in byte order")]
    NotSorted {
        /// The first such line, from 1; 0 when it is not known.
        line: u64,
    },
    /// A line is no statement.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// The description of an entity is too large.
    #[error(transparent)]
    TooLarge(#[from] abreast_rdf::TooLarge),
    /// An input cannot be read, or is wrong.
    #[error("{name}: {cause}")]
    Input {
        /// Its name.
        name: String,
        /// What is wrong.
        cause: abreast_rdf::ReadError,
    },
    /// Blank nodes cannot get IRIs.
    #[error("{0}")]
    Skolem(String),
    /// It was stopped.
    #[error("stopped")]
    Stopped,
    /// The disk failed.
    #[error("a temporary file failed")]
    Io(#[from] io::Error),
}
