//! Errors while a description is written.

use crate::notation::syntax::Syntax;
use crate::read::error::ReadError;
use std::io;

/// A syntax that cannot express a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{syntax} cannot carry the description: {message}")]
pub struct CannotWrite {
    syntax: Syntax,
    message: String,
}

impl CannotWrite {
    pub(super) fn new(syntax: Syntax, message: impl Into<String>) -> Self {
        Self { syntax, message: message.into() }
    }

    /// The syntax that cannot express the statement.
    pub fn syntax(&self) -> Syntax {
        self.syntax
    }
}

/// The reason why a description was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The lines are not N-Triples.
    #[error("the description is not N-Triples")]
    Lines(#[from] ReadError),
    /// The syntax cannot express a statement.
    #[error(transparent)]
    Cannot(#[from] CannotWrite),
    /// The output could not be written.
    #[error("cannot write the output")]
    Io(#[from] io::Error),
}
