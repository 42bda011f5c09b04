//! Folders of stores and copies, as the commands of maintenance get them.

use crate::config::target::folder_of;
use crate::program::exit::USAGE;
use crate::store::data_folder::refuse_database;
use abreast_maintenance::{Place, StateFolders, StoreRecord};
use abreast_server::api::{check_tokens, repair_tokens, tokens_path};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;

/// The tokens of a server, in the folder of its store.
pub(crate) const TOKENS: StoreRecord = StoreRecord {
    name: "the tokens",
    check: |store| check_tokens(&tokens_path(store)),
    repair: |store, dry_run| repair_tokens(&tokens_path(store), dry_run),
};

/// The folder in an argument, with its name in messages.
pub(crate) fn place_of(target: &str) -> Place {
    Place { folder: folder_of(target).to_owned(), shown: target.to_owned() }
}

/// Refuses the URL of a database, where a command needs the folder of a store. The error is printed, and
/// returned as the exit code.
pub(crate) fn database_refused(target: &Path, help: &str) -> Option<ExitCode> {
    let error = refuse_database(target, help).err()?;
    crate::program::logging::failure(&error, USAGE);
    Some(ExitCode::from(USAGE))
}

/// The copies of all sets in a folder (`--all-sets`), with the names of their folders; empty if the folder itself contains a
/// store or a copy.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn sets_in(target: &str) -> Result<Vec<(String, StateFolders)>> {
    let folder = folder_of(target);
    if !StateFolders::find(folder)?.is_none() {
        return Ok(Vec::new());
    }
    let sets = crate::store::all_sets::folders(folder)?.into_iter();
    sets.map(|(name, folder)| Ok((name, StateFolders::find(&folder)?))).collect()
}
