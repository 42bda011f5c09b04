//! A store as a backup has it: the backup is verified first, and an existing store is moved aside, if at all.

use crate::backup::manifest::as_text;
use crate::backup::manifest::{BackedUpFile, BackupManifest, DATABASE, newest};
use crate::backup::verify::{contents_of, damaged_content, verify};
use crate::backup::{BackedUpSet, copy_content, is_of_store, is_passing};
use crate::place::{Context as _, Error, HUB_DATABASE, Result, hold, there};
use abreast_contents::{Contents, View};
use abreast_core::contents::ContentStore as _;
use abreast_core::{Clock as _, Meter, SystemClock};
use abreast_destination::{published_above, resolved};
use abreast_store::NeededContents;
use abreast_store::backup::{restart_hub_log, restart_log};
use abreast_store::repair::drop_contents;
use serde::Serialize;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The folder in which a store is restored, in its place, and the lock in it.
const MAKING: &str = ".abreast-restoring";
const LOCK: &str = "restore.lock";

/// The backup to restore, and the folder of the new store.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// One backup, or a folder of backups, of which the newest is used.
    pub backup: PathBuf,
    /// The folder of the new store; must be missing or without a store.
    pub dir: PathBuf,
    /// Whether to move an existing store into the folder `replaced-TIME` in its folder.
    pub replace: bool,
    /// Whether to continue the same log, because nothing was recorded after the backup.
    pub same_log: bool,
    /// Whether to leave out damaged contents, with the versions that need them.
    pub without_damaged: bool,
    /// Whether to verify the backup and write nothing.
    pub dry_run: bool,
    /// Shows how far the restoration is.
    pub meter: Meter,
}

impl RestoreOptions {
    /// Creates options that restart the log and refuse a damaged backup.
    pub fn new(backup: impl Into<PathBuf>, dir: impl Into<PathBuf>) -> Self {
        let (backup, dir) = (backup.into(), dir.into());
        let meter = Meter::default();
        let (replace, same_log, without_damaged, dry_run) = (false, false, false, false);
        Self { backup, dir, replace, same_log, without_damaged, dry_run, meter }
    }
}

/// The restored store, and its losses.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "summary")]
pub struct RestoreReport {
    /// The backup that was read.
    #[serde(serialize_with = "as_text")]
    pub backup: PathBuf,
    /// The folder of the new store.
    #[serde(serialize_with = "as_text")]
    pub dir: PathBuf,
    /// The folder with the store that was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
    /// Time at which the backup was made.
    pub created: String,
    /// The sets of the store.
    pub sets: Vec<BackedUpSet>,
    /// Whether the store continues the log of the backup.
    pub same_log: bool,
    /// Number of damaged contents that were left out.
    pub contents_lost: u64,
    /// Number of contents of the store.
    pub contents: u64,
    /// Bytes of the store: its files and contents.
    pub bytes: u64,
    /// Whether the run wrote nothing, because of `dry_run`.
    pub dry_run: bool,
}

/// Makes a store from a backup, which is verified first.
///
/// # Errors
/// The backup is missing or damaged; the folder is not empty, is published, or is in use; the disk failed or is full.
pub fn restore(options: &RestoreOptions) -> Result<RestoreReport> {
    if !there::is_dir(&options.backup)? {
        let message = format!("there is no backup `{}`", options.backup.display());
        return Err(Error::Usage(message));
    }
    let backup = newest(&options.backup)?;
    let dir = resolved(&options.dir);
    if let Some(published) = published_above(&dir, &[]) {
        let message = format!(
            "`{}` is in `{}`, which is published: everybody could read the store\n  help: name a folder elsewhere",
            options.dir.display(),
            published.display()
        );
        return Err(Error::Usage(message));
    }
    let manifest = BackupManifest::read(&backup)?;
    if !options.replace {
        check_empty(&dir, &manifest)?;
    }
    let contents = View::open(&contents_of(&backup))?;
    let (meter, never) = (&options.meter, AtomicBool::new(false));
    let damaged = verify(&backup, &contents, &manifest, &mut HashSet::new(), &never, meter)?;
    if let Some(first) = damaged.first().filter(|_| !options.without_damaged) {
        return Err(damaged_content(first, damaged.len()));
    }
    let mut report = RestoreReport {
        dir: options.dir.clone(),
        replaced: None,
        created: manifest.created.clone(),
        sets: Vec::new(),
        same_log: options.same_log,
        contents_lost: damaged.len() as u64,
        contents: 0,
        bytes: manifest.files.iter().map(|file| file.length).sum(),
        dry_run: options.dry_run,
        backup: backup.clone(),
    };
    if options.dry_run {
        for needed in NeededContents::open(&backup.join(DATABASE))? {
            let (id, length) = needed?;
            report.count(damaged.binary_search(&id).is_err(), length);
        }
        report.sets = manifest.sets;
        return Ok(report);
    }
    if options.replace {
        report.replaced = move_aside(&dir, &manifest)?;
    }
    // Restore into the existing folder, which may be a mount point and retains its mode and owner. The database is written
    // last: a folder without a database is not a store.
    let making = dir.join(MAKING);
    there::make_folder(&making).with_context(|| format!("cannot make `{}`", making.display()))?;
    let folder = abreast_folder::Folder::open(&making)?;
    let Some(lock) = folder.root().lock(LOCK.as_bytes())? else {
        return Err(busy(&dir));
    };
    // Another restore may have been completed meanwhile.
    if let Err(error) = check_empty(&dir, &manifest) {
        let _ = fs::remove_dir_all(&making);
        return Err(error);
    }
    let left = fs::read_dir(&dir)?.collect::<io::Result<Vec<_>>>()?;
    let is_left = |entry: &&fs::DirEntry| {
        entry.file_name() != MAKING && is_written(&entry.file_name(), &manifest)
    };
    for entry in left.iter().filter(is_left) {
        // The restore that was interrupted had put it there: the folder was empty.
        remove(&entry.path()).context("cannot remove what an interrupted restore left")?;
    }
    for entry in fs::read_dir(&making)?.collect::<io::Result<Vec<_>>>()? {
        if entry.file_name() != LOCK {
            remove(&entry.path()).context("cannot remove what an interrupted restore left")?;
        }
    }
    meter.begin("copying");
    for file in &manifest.files {
        let _named = meter.item(|| file.path.clone());
        meter.add(1, file.length);
        copy_to(&backup.join(&file.path), &making.join(&file.path))
            .with_context(|| format!("cannot copy `{}`", file.path))?;
    }
    let database = making.join(DATABASE);
    let kept = Contents::open(&making.join("contents"))?;
    for needed in NeededContents::open(&database)? {
        let (id, length) = needed?;
        if damaged.binary_search(&id).is_ok() {
            continue;
        }
        meter.add(1, length);
        let _named = meter.item(|| id.to_string());
        if copy_content(&contents, &kept, &id, length, false)
            .context("cannot copy kept contents")?
            .is_none()
        {
            return Err(Error::Damaged(format!("the kept content {id} is missing in the backup")));
        }
        report.count(true, length);
    }
    kept.sync()?;
    drop(kept);
    if !damaged.is_empty() {
        drop_contents(&database, &damaged)?;
    }
    if !options.same_log {
        restart_log(&database, SystemClock.now())?;
        if making.join(HUB_DATABASE).is_file() {
            restart_hub_log(&making.join(HUB_DATABASE))?;
        }
    }
    abreast_folder::Folder::open(&making)?
        .root()
        .sync_filesystem()
        .context("cannot make the store durable")?;
    own_as(&dir, &making).context("cannot give the store the owner of its folder")?;
    let put = |name: &std::ffi::OsStr| {
        fs::rename(making.join(name), dir.join(name))
            .with_context(|| format!("cannot put the store into `{}`", dir.display()))
    };
    for entry in fs::read_dir(&making)?.collect::<io::Result<Vec<_>>>()? {
        if entry.file_name() != LOCK && entry.file_name() != DATABASE {
            put(&entry.file_name())?;
        }
    }
    put(DATABASE.as_ref())?;
    fs::remove_dir_all(&making).context("cannot remove the folder of the restore")?;
    drop(lock);
    fs::File::open(&dir)
        .and_then(|folder| folder.sync_all())
        .context("cannot make the store durable")?;
    report.sets = manifest.sets;
    Ok(report)
}

impl RestoreReport {
    fn count(&mut self, is_restored: bool, length: u64) {
        if is_restored {
            (self.contents, self.bytes) = (self.contents + 1, self.bytes + length);
        }
    }
}

/// Whether a restore of this backup, or a server that uses the store, writes this file or folder.
fn is_restored(name: &OsStr, manifest: &BackupManifest) -> bool {
    let is_data = is_of_store(&name.to_string_lossy()) && !is_passing(Path::new(name));
    is_data || is_written(name, manifest)
}

/// Whether a restore of this backup writes this file or folder: an interrupted one left it.
fn is_written(name: &OsStr, manifest: &BackupManifest) -> bool {
    let first =
        |file: &BackedUpFile| file.path.split('/').next().is_some_and(|first| name == first);
    name == MAKING || name == "contents" || manifest.files.iter().any(first)
}

/// Moves the store in a folder into a new folder next to it; the new folder.
fn move_aside(dir: &Path, manifest: &BackupManifest) -> Result<Option<String>> {
    if !there::is_dir(dir)? {
        return Ok(None);
    }
    let time = SystemClock.now().to_string().replace(['-', ':'], "");
    let aside = dir.join(format!("replaced-{time}"));
    let task = || format!("cannot move the store into `{}`", aside.display());
    let entries = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let names = entries.with_context(task)?.into_iter().map(|entry| entry.file_name());
    let is_moved = |name: &OsString| is_restored(name, manifest) && name != MAKING;
    let names: Vec<OsString> = names.filter(is_moved).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let _lock = hold(dir, false, "restore again")?;
    fs::create_dir(&aside).with_context(task)?;
    for name in names {
        fs::rename(dir.join(&name), aside.join(&name)).with_context(task)?;
    }
    own_as(dir, &aside).with_context(task)?;
    Ok(Some(aside.display().to_string()))
}

/// Refuses a folder that contains a store, unless an interrupted restore of the same backup left it.
fn check_empty(dir: &Path, manifest: &BackupManifest) -> Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("cannot read `{}`", dir.display()))?,
    };
    let making = dir.join(MAKING);
    // An interrupted restore may not have created its lock file yet.
    let has_begun = making.join(LOCK).is_file()
        || fs::read_dir(&making).is_ok_and(|mut entries| entries.next().is_none());
    let is_begun = has_begun && !dir.join(DATABASE).exists();
    for entry in entries {
        let name = entry?.file_name();
        if is_restored(&name, manifest) && !(is_begun && is_written(&name, manifest)) {
            let message = format!(
                "`{}` has `{}` of a store already\n  help: --replace moves the store there aside; or name another folder",
                dir.display(),
                name.to_string_lossy()
            );
            return Err(Error::Usage(message));
        }
    }
    Ok(())
}

fn busy(dir: &Path) -> Error {
    Error::InUse(format!(
        "another process restores a store into `{}`\n  help: wait for it",
        dir.display()
    ))
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Gives what root restores to the owner of the folder, who is to use it.
fn own_as(dir: &Path, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let (owner, own) = (fs::metadata(dir)?, fs::symlink_metadata(path)?);
    if (owner.uid(), owner.gid()) != (own.uid(), own.gid()) {
        std::os::unix::fs::lchown(path, Some(owner.uid()), Some(owner.gid()))?;
    }
    if own.is_dir() {
        for entry in fs::read_dir(path)? {
            own_as(dir, &entry?.path())?;
        }
    }
    Ok(())
}

fn copy_to(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).map(drop)
}
