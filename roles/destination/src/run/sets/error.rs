//! Errors about the copies of all sets.

use crate::report::error::{Error, ExitCode};
use crate::run::open_files::TooFewFiles;
use std::path::PathBuf;

/// The reason why the copies of all sets of a Source cannot be synchronised or audited. Errors of a
/// single set are reported to its observer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetsError {
    /// The Source cannot be read, or another run uses the copies.
    #[error(transparent)]
    Run(#[from] Error),
    /// The copies have their states in another folder, which the options do not contain.
    #[error(
        "the copies in {} have their states in {}\n  help: give `--state {}`",
        copies.display(), state.display(), state.display()
    )]
    StatesElsewhere {
        /// The folder of the copies.
        copies: PathBuf,
        /// The folder of their states.
        state: PathBuf,
    },
    /// The folder already contains the copy of a single set.
    #[error("{} is a copy of one set\n  help: give `--all-sets` a folder of its own", folder.display())]
    OneSet {
        /// The folder of the copy.
        folder: PathBuf,
    },
    /// The folder contains copies, and of none of the sets that the Source has.
    #[error(
        "{} holds copies of other sets, such as {example}, and of none that {url} has\n  help: use another folder",
        folder.display()
    )]
    OtherSets {
        /// The folder of the copies.
        folder: PathBuf,
        /// The Capability List of a set with a copy.
        example: String,
        /// The address of the Source.
        url: String,
    },
    /// Too few files may be open to follow all sets in parallel.
    #[error(transparent)]
    OpenFiles(#[from] TooFewFiles),
    /// The folder for the states of the copies cannot be made.
    #[error("cannot make `{}`", path.display())]
    FolderNotMade {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        #[source]
        cause: std::io::Error,
    },
    /// The folder with the states of the copies cannot be opened.
    #[error("cannot open the folder of the state `{}`", path.display())]
    FolderNotOpened {
        /// The folder.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: abreast_folder::Error,
    },
    /// The record of the sets or the folder of a copy cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        #[source]
        cause: std::io::Error,
    },
    /// The record of the sets is not what a run wrote.
    #[error("`{}` is damaged\n  help: remove it; folders are given to sets by their names again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The record of the sets cannot be written.
    #[error("cannot write `{}`", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        cause: std::io::Error,
    },
}

impl SetsError {
    /// The exit code of a program that this error ends.
    pub const fn exit_code(&self) -> ExitCode {
        match self {
            Self::Run(error) => error.exit_code(),
            Self::StatesElsewhere { .. }
            | Self::OneSet { .. }
            | Self::OtherSets { .. }
            | Self::OpenFiles(_) => ExitCode::Usage,
            Self::Damaged { .. } => ExitCode::Other,
            Self::FolderNotMade { .. }
            | Self::FolderNotOpened { .. }
            | Self::Unreadable { .. }
            | Self::Unwritable { .. } => ExitCode::Io,
        }
    }
}
