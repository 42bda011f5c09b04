//! Reading a store that cannot be written, as on a read-only mount: from a temporary copy of its database.

use crate::state_folders::holder_of;
use abreast_core::SystemClock;
use abreast_store::SqliteLog;
use abreast_store::backup::copy;
use anyhow::{Context as _, Result};
use rustix::fs::{Access, access};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

const DATABASE: &str = "source.db";

/// Whether this process may not write the store in a folder, and no server has it open.
pub(crate) fn is_unwritable(data: &Path) -> bool {
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    !(may_write(data) && may_write(&data.join(DATABASE)))
        && holder_of(&data.join("source.lock")).is_none()
}

/// Opens a copy of the log, which is as large as the database, in a folder for temporary files.
///
/// # Errors
/// The database cannot be read, or not be copied.
pub(crate) fn open_copy(data: &Path) -> Result<(SqliteLog, TempDir)> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let (from, to) = (data.join(DATABASE), folder.path().join(DATABASE));
    let from = from.canonicalize().with_context(|| format!("cannot find `{}`", from.display()))?;
    if copy(&from, &to).is_err() {
        // A killed server left changes beside the database: to read them, SQLite would have to write there.
        copy_files(&from, &to).with_context(|| {
            format!("cannot copy the store `{}`, which cannot be written here", data.display())
        })?;
    }
    let log = SqliteLog::open(&to, Arc::new(SystemClock))
        .with_context(|| format!("cannot read the store `{}`", data.display()))?;
    Ok((log, folder))
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
