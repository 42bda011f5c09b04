//! Reading a store without writing to it: where it cannot be written, as on a read-only mount, or has an older
//! schema, from a temporary copy of its database.

use crate::store::stores::{Stores, Task};
use abreast_core::LogError;
use abreast_maintenance::{holder_of, refuse_backup};
use abreast_store::backup::copy;
use anyhow::{Context as _, Result};
use rustix::fs::{Access, access};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A database to be read: the store's own, which no other process has open, or a copy.
pub(crate) struct Readable {
    /// Path of the database to open.
    pub(crate) path: PathBuf,
    _stores: Option<Stores>,
    _copy: Option<TempDir>,
}

impl Readable {
    /// Finds out how a database of a store can be read. `is_changed` decides whether opening it would change it. A copy is as
    /// large as the database, and in a folder for temporary files.
    ///
    /// # Errors
    /// Another process has the store open; or its database cannot be read, or not be copied.
    pub(crate) fn of(
        data: &Path,
        database: &str,
        is_changed: fn(&Path) -> Result<bool, LogError>,
    ) -> Result<Self> {
        refuse_backup(data)?;
        let path = data.join(database);
        if is_unwritable(data, &path) || is_changed(&path).unwrap_or(false) {
            let (path, copy) = copy_of(data, database)?;
            return Ok(Self { path, _stores: None, _copy: Some(copy) });
        }
        let stores = Stores::open(data, Task::Read)?;
        Ok(Self { path, _stores: Some(stores), _copy: None })
    }
}

/// Whether this process may not write the store in a folder, and no server has it open.
fn is_unwritable(data: &Path, database: &Path) -> bool {
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    !(may_write(data) && may_write(database)) && holder_of(&data.join("source.lock")).is_none()
}

fn copy_of(data: &Path, database: &str) -> Result<(PathBuf, TempDir)> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let (from, to) = (data.join(database), folder.path().join(database));
    let from = from.canonicalize().with_context(|| format!("cannot find `{}`", from.display()))?;
    if copy(&from, &to).is_err() {
        // A killed server left changes in SQLite's second file. SQLite reads that file only if the folder is writable.
        copy_files(&from, &to).with_context(|| {
            format!("cannot copy the store `{}`, which cannot be written here", data.display())
        })?;
    }
    Ok((to, folder))
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    let wal = |path: &Path| -> PathBuf {
        let mut name = OsString::from(path);
        name.push("-wal");
        name.into()
    };
    for name in [to.to_owned(), wal(to)] {
        match fs::remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    // Not `copy`, which would take over that it is read-only.
    io::copy(&mut fs::File::open(from)?, &mut fs::File::create(to)?)?;
    match fs::File::open(wal(from)) {
        Ok(mut file) => io::copy(&mut file, &mut fs::File::create(wal(to))?).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
