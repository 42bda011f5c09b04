//! Errors about the copies of all sets.

use crate::report::error::{Error, ExitCode};
use crate::report::open_files::TooFewFiles;
use std::path::PathBuf;

/// The reason why the copies of all sets of a Source cannot be synchronised or audited. Errors of a
/// single set are reported to its observer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetsError {
    /// The Source cannot be read, or another run uses the copies.
    #[error(transparent)]
    Run(#[from] Error),
    /// The copies in the first folder have their databases in the second folder, which the options
    /// do not contain.
    #[error(
        "the copies in {} have their states in {}\n  help: give `--state {}`",
        .0.display(), .1.display(), .1.display()
    )]
    StatesElsewhere(PathBuf, PathBuf),
    /// The folder already contains the copy of a single set.
    #[error("{} is a copy of one set\n  help: give `--all-sets` a folder of its own", .0.display())]
    OneSet(PathBuf),
    /// The folder contains copies of other sets only: the folder, one of the sets, and the Source.
    #[error(
        "{folder} holds copies of other sets, such as {example}, and of none that {url} has\n  help: use another folder",
        folder = .0.display(), example = .1, url = .2
    )]
    OtherSets(PathBuf, String, String),
    /// Too few files may be open to follow all sets in parallel.
    #[error(transparent)]
    OpenFiles(#[from] TooFewFiles),
    /// The common folder of the copies cannot be made.
    #[error("cannot make `{}`", .0.display())]
    FolderNotMade(PathBuf, #[source] std::io::Error),
    /// The common folder of the copies cannot be opened.
    #[error("cannot open the folder of the state `{}`", .0.display())]
    FolderNotOpened(PathBuf, #[source] abreast_folder::Error),
    /// The record of the sets or the folder of a copy cannot be read.
    #[error("cannot read `{}`", .0.display())]
    Unreadable(PathBuf, #[source] std::io::Error),
    /// The record of the sets is not the text that a run wrote.
    #[error("`{}` is damaged\n  help: remove it; folders are given to sets by their names again", .0.display())]
    Damaged(PathBuf),
    /// The record of the sets cannot be written.
    #[error("cannot write `{}`", .0.display())]
    Unwritable(PathBuf, #[source] std::io::Error),
}

impl SetsError {
    /// The exit code of a program that this error ends.
    pub const fn exit_code(&self) -> ExitCode {
        match self {
            Self::Run(error) => error.exit_code(),
            Self::StatesElsewhere(..)
            | Self::OneSet(_)
            | Self::OtherSets(..)
            | Self::OpenFiles(_) => ExitCode::Usage,
            Self::Damaged(_) => ExitCode::Other,
            Self::FolderNotMade(..)
            | Self::FolderNotOpened(..)
            | Self::Unreadable(..)
            | Self::Unwritable(..) => ExitCode::Io,
        }
    }
}
