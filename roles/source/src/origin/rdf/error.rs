//! Errors of reading RDF into a set.

use crate::scan::guard::Held;
use abreast_core::LogError;
use abreast_statements::Error;
use abreast_webtypes::count;
use std::io;
use std::path::PathBuf;
/// RDF could not be read into a set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RdfError {
    /// The statements cannot be read.
    #[error(transparent)]
    Statements(#[from] abreast_statements::Error),
    /// A state or a difference is being imported.
    #[error("an import of RDF is running")]
    Importing,
    /// A delta does not apply.
    #[error("{0}")]
    Delta(String),
    /// An endpoint fails, or its answer is not complete.
    #[error("{0}")]
    Endpoint(String),
    /// A file is being written.
    #[error("`{}` is being written\n  help: try again when it is complete", .0.display())]
    Unsettled(PathBuf),
    /// Too much would be deleted.
    #[error("{} of {} would be deleted; nothing was recorded", held.missing, count(held.of, "entity"))]
    Deletions {
        /// What would be deleted.
        held: Held,
    },
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The descriptions cannot be kept.
    #[error(transparent)]
    Contents(#[from] abreast_contents::Error),
    /// The disk failed.
    #[error("a temporary file failed")]
    Io(#[from] io::Error),
    /// It failed in the folder of temporary files.
    #[error(
        "cannot write or read a temporary file in `{}`\n  help: they are as large as the statements; free space on its disk",
        folder.display()
    )]
    Temporary {
        /// The folder.
        folder: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl RdfError {
    /// Its text and its cause: most have that in their own text.
    pub(crate) fn text(&self) -> String {
        let text = self.to_string();
        let cause = std::error::Error::source(self).map(ToString::to_string);
        let Some(cause) = cause.filter(|cause| !text.contains(cause)) else { return text };
        match text.split_once('\n') {
            Some((first, help)) => format!("{first}: {cause}\n{help}"),
            None => format!("{text}: {cause}"),
        }
    }

    /// Whether the input is wrong: the same input will be refused again.
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
