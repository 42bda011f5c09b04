//! Errors of reading RDF into a set.

use crate::scan::guard::Held;
use abreast_core::LogError;
use abreast_statements::Error;
use abreast_webtypes::count;
use std::io;
use std::path::PathBuf;
/// Error of reading RDF into a set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RdfError {
    /// The statements cannot be read, or are invalid.
    #[error(transparent)]
    Statements(#[from] abreast_statements::Error),
    /// Another import into this set is running.
    #[error("an import of RDF is running")]
    Importing,
    /// The delta does not apply to the current state.
    #[error("{0}")]
    Delta(String),
    /// The endpoint fails, or its response is incomplete.
    #[error("{0}")]
    Endpoint(String),
    /// A process is still writing a file of the input.
    #[error("`{}` is being written\n  help: try again when it is complete", .0.display())]
    Unsettled(PathBuf),
    /// The number of deletions exceeds the limits of the guard.
    #[error("{} of {} would be deleted; nothing was recorded", held.missing, count(held.of, "entity"))]
    Deletions {
        /// Deletions that the guard does not allow without a confirmation.
        held: Held,
    },
    /// The change log cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The descriptions cannot be stored.
    #[error(transparent)]
    Contents(#[from] abreast_core::contents::Error),
    /// Writing to the disk failed.
    #[error("a temporary file failed")]
    Io(#[from] io::Error),
    /// The folder of temporary files is not usable.
    #[error(
        "cannot write or read a temporary file in `{}`\n  help: they are as large as the statements; free space on its disk",
        folder.display()
    )]
    Temporary {
        /// Path of the folder of temporary files.
        folder: PathBuf,
        /// Error of the file system.
        #[source]
        cause: io::Error,
    },
}

impl RdfError {
    /// Returns the text of the error and of its cause. The text of most errors already includes the
    /// cause.
    pub(crate) fn text(&self) -> String {
        let text = self.to_string();
        let cause = std::error::Error::source(self).map(ToString::to_string);
        let Some(cause) = cause.filter(|cause| !text.contains(cause)) else { return text };
        match text.split_once('\n') {
            Some((first, help)) => format!("{first}: {cause}\n{help}"),
            None => format!("{text}: {cause}"),
        }
    }

    /// Whether the input is invalid, so that a retry with the same input fails too.
    pub fn is_of_input(&self) -> bool {
        matches!(
            self,
            Self::Delta(_)
                | Self::Statements(
                    Error::Input { .. }
                        | Error::TooLarge(_)
                        | Error::Together(_)
                        | Error::Line { .. }
                        | Error::Skolem(_)
                        | Error::Unknown(_)
                        | Error::Graph { .. }
                )
        )
    }
}
