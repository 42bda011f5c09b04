//! The lock that a server holds while it uses a store.

use crate::place::error::{Context as _, Error, Result};
use crate::place::lock_holder::holder_of;
use abreast_folder::{Folder, Locked};
use std::path::Path;

/// The error for a store or copy that another process has locked; `then` is the command to run again.
pub(crate) fn in_use(what: &Path, lock: Option<&Path>, then: &str) -> Error {
    let by = lock.and_then(holder_of).map(|pid| format!(" (process {pid})")).unwrap_or_default();
    Error::InUse(format!(
        "`{}` is in use by another process{by}\n  help: stop it, then {then}",
        what.display()
    ))
}

/// Locks a store against servers, unless `dry_run`; `then` is the command in the error if the store is in use.
///
/// # Errors
/// Another process uses the store, or it cannot be locked.
pub fn hold(store: &Path, dry_run: bool, then: &str) -> Result<Option<Locked>> {
    if dry_run {
        return Ok(None);
    }
    let folder = Folder::open(store)
        .with_context(|| format!("cannot open the store's folder `{}`", store.display()))?;
    match folder
        .root()
        .lock(b"source.lock")
        .with_context(|| format!("cannot lock the store `{}`", store.display()))?
    {
        Some(lock) => Ok(Some(lock)),
        None => Err(in_use(store, Some(&store.join("source.lock")), then)),
    }
}

/// Refuses a store that a server uses, for a command that does not write and so takes no lock.
///
/// # Errors
/// Another process has locked the store.
pub fn refuse_held(store: &Path, then: &str) -> Result<()> {
    let lock = store.join("source.lock");
    if holder_of(&lock).is_some() { Err(in_use(store, Some(&lock), then)) } else { Ok(()) }
}
