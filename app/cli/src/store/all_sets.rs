//! Output of runs on all sets of a Source (`--all-sets`).

use crate::program::report::{Reporter, failed};
use abreast_destination::{Observer, SetsError};
use abreast_folder::Locked;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The observers of a run on all sets: `reporter` makes the reporter of a set, or of all sets
/// together.
pub(crate) fn observers(
    reporter: &(dyn Fn(Option<&str>) -> Reporter + Sync),
) -> impl Fn(Option<&str>) -> Box<dyn Observer> + Sync {
    |set| Box::new(reporter(set))
}

/// Reports an error that ended a run on all sets, and returns its exit code.
pub(crate) fn report(error: SetsError, reporter: &Reporter) -> u8 {
    match error {
        SetsError::Run(error) => failed(reporter, &error),
        error => crate::program::logging::print_error(&error.into()),
    }
}

/// The copies of all sets in a folder, each with its name; empty for any other folder.
pub(crate) fn folders(dir: &Path) -> Result<Vec<(String, PathBuf)>> {
    abreast_destination::copies_of_sets(dir).map_err(plain)
}

/// Locks the copies of all sets in a folder, so that no other run uses them.
pub(crate) fn take(dir: &Path) -> Result<Option<Locked>> {
    abreast_destination::lock_sets(dir).map_err(plain)
}

/// The error without its wrapper, so that the exit code of a run's error is found.
fn plain(error: SetsError) -> anyhow::Error {
    match error {
        SetsError::Run(error) => error.into(),
        error => error.into(),
    }
}
