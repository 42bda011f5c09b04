//! The shared files of a set that is removed or renamed, while no node runs.

use super::error::SharedError;
use super::files::{KINDS, group_of};
use super::record::SharedRecord;
use abreast_core::contents::made::{MadeStore, RecordRead};
use abreast_core::contents::{Error, ErrorKind};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Seek as _;

/// The kind of files that a renamed set retains. Others contain the former addresses of resources, and are made again.
const RETAINED: &str = "archives";
/// Attempts to replace a record that another process changes at the same time.
const ATTEMPTS: usize = 10;

/// Removes the made files of a set from the store of several nodes, which must not run.
///
/// # Errors
/// The store is out of reach or failed. The removal can be started again.
pub fn remove_made_files(store: &dyn MadeStore, slug: &str) -> Result<(), Error> {
    for kind in KINDS {
        remove_group(store, &group_of(kind, slug))?;
    }
    Ok(())
}

/// Moves the archived lists of a renamed set, and removes its other made files, from the store of several nodes, which
/// must not run. Each archived file is in the folder for temporary files meanwhile.
///
/// # Errors
/// The store is out of reach or failed, the record is damaged, or the temporary file cannot be written. The call can be
/// repeated.
pub fn rename_made_files(store: &dyn MadeStore, (old, new): (&str, &str)) -> Result<(), Error> {
    for kind in KINDS {
        let group = group_of(kind, old);
        if kind == RETAINED {
            copy_group(store, &group, &group_of(kind, new))?;
        }
        remove_group(store, &group)?;
    }
    Ok(())
}

/// The record of a group with its version, if there is one.
fn read(store: &dyn MadeStore, group: &str) -> Result<Option<(Vec<u8>, String)>, Error> {
    Ok(match store.record(group, None)? {
        RecordRead::Changed { record, version } => Some((record, version)),
        // Without a known version, the record is never the same.
        RecordRead::Missing | RecordRead::Same => None,
    })
}

/// Replaces the record of a group in any version.
fn replace(store: &dyn MadeStore, group: &str, record: &[u8]) -> Result<(), Error> {
    for _ in 0..ATTEMPTS {
        let known = read(store, group)?;
        if known.as_ref().is_some_and(|(known, _)| known == record) {
            return Ok(());
        }
        let version = known.as_ref().map(|(_, version)| version.as_str());
        if store.replace_record(group, record, version)?.is_some() {
            return Ok(());
        }
    }
    let message = format!(
        "another process changes the record of the made files `{group}`\n  help: stop all nodes first"
    );
    Err(Error::new(ErrorKind::Busy, message))
}

/// Removes the files of a group. Its record is replaced first, so that it never lists a removed file.
fn remove_group(store: &dyn MadeStore, group: &str) -> Result<(), Error> {
    if read(store, group)?.is_some() {
        let empty = SharedRecord::default().to_bytes().map_err(failed)?;
        replace(store, group, &empty)?;
    }
    for name in names(store, group)? {
        store.remove(group, &name)?;
    }
    Ok(())
}

/// The error of a record that cannot be read or written.
fn failed(error: SharedError) -> Error {
    match error {
        SharedError::Store(error) => error,
        error => Error::new(ErrorKind::Damaged, error.to_string()),
    }
}

/// The error of a temporary file.
fn of_file(cause: std::io::Error) -> Error {
    Error::new(ErrorKind::Other, "cannot write a temporary file").with_cause(cause)
}

fn names(store: &dyn MadeStore, group: &str) -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    let mut visit = |name: &str, _| {
        names.insert(name.to_owned());
    };
    store.visit(group, &mut visit)?;
    Ok(names)
}

/// Copies the items of a group, whose names do not change. Files of a former set with the new name are removed.
fn copy_group(store: &dyn MadeStore, from: &str, to: &str) -> Result<(), Error> {
    let Some((record, _)) = read(store, from)? else { return Ok(()) };
    let mut record = SharedRecord::parse(&record).map_err(failed)?;
    if record.items.is_empty() {
        // Also if an earlier call has moved the items.
        return Ok(());
    }
    let (wanted, present) = (record.keys(), names(store, to)?);
    for name in present.difference(&wanted) {
        store.remove(to, name)?;
    }
    for file in record.items.iter().flat_map(|item| &item.files) {
        let Some(made) = file.made().filter(|made| !present.contains(&made.name)) else { continue };
        let mut temporary: File = tempfile::tempfile().map_err(of_file)?;
        store.fetch(from, &made, &mut temporary)?;
        temporary.rewind().map_err(of_file)?;
        store.put(to, &made, &mut temporary)?;
    }
    record.removed.clear();
    record.wanted = 0;
    replace(store, to, &record.to_bytes().map_err(failed)?)
}
