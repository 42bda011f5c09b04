//! `abreast restore`: a store as a backup has it, verified first, never over one that is there.

use crate::backup::copy_content;
use crate::backup_check::{contents_of, damaged_content, verify};
use crate::backup_manifest::{DATABASE, FileEntry, Manifest, newest};
use crate::logging;
use crate::repair::code_of;
use crate::state_folders::HUB_DATABASE;
use crate::terminal::line;
use abreast_contents::{Contents, View};
use abreast_core::{Clock as _, SystemClock};
use abreast_destination::{published_above, resolved};
use abreast_store::NeededContents;
use abreast_store::backup::{restart_hub_log, restart_log};
use abreast_store::repair::drop_contents;
use abreast_webtypes::count;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::json;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

const HELP: &str = "\
Examples:
  abreast restore /mnt/backups/papers /var/lib/abreast
  abreast restore /mnt/backups/papers/20260131T120000.000000Z /var/lib/abreast
  abreast restore /mnt/backups/papers /srv/new/.abreast --same-log

BACKUP is one backup, or a folder of backups, of which the newest is used. All of it is verified before anything is written.
Changes recorded after the backup are not in it. The log is therefore restarted: Destinations notice it, and compare everything
once. Use --same-log only if nothing was recorded after the backup, as in a move to another machine.

Exit codes: 0 done, 1 the backup is damaged, 2 usage or DIR is not empty, 13 disk or permission denied.";

/// The folder in which a store is restored, in its place, and the lock in it.
const MAKING: &str = ".abreast-restoring";
const LOCK: &str = "restore.lock";

/// Options of `restore`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RestoreArgs {
    /// A backup, or a folder of backups
    backup: PathBuf,
    /// Folder of the store to make; must be empty or missing
    dir: PathBuf,
    /// Continue the same log: nothing was recorded after the backup was made
    #[arg(long)]
    same_log: bool,
    /// Leave out kept contents that are damaged or missing in the backup, with the versions that need them
    #[arg(long)]
    without_damaged: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Nothing can be done as it was asked.
#[derive(Debug)]
struct RestoreRefused(String);

impl std::fmt::Display for RestoreRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RestoreRefused {}

/// Runs `restore`.
pub(crate) fn run(args: &RestoreArgs) -> ExitCode {
    match restore(args) {
        Ok((manifest, lost)) => {
            if args.json {
                line(
                    &json!({"type": "summary", "dir": args.dir, "created": manifest.created, "sets": manifest.sets,
                    "same_log": args.same_log, "contents_lost": lost})
                    .to_string(),
                );
            } else {
                manifest.print_sets();
                line(&format!("restored as of {}", manifest.created));
                if lost > 0 {
                    line(&format!("without {}", count(lost, "damaged content")));
                }
                if !args.same_log {
                    line(
                        "a new history begins; each copy compares all files once (equal files are not fetched)",
                    );
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            let code = if error.is::<RestoreRefused>() { 2 } else { code_of(&error) };
            logging::failure(&error, code);
            ExitCode::from(code)
        }
    }
}

fn restore(args: &RestoreArgs) -> Result<(Manifest, u64)> {
    if !crate::there::is_dir(&args.backup)? {
        bail!(RestoreRefused(format!("there is no backup `{}`", args.backup.display())));
    }
    let backup = newest(&args.backup)?;
    let dir = resolved(&args.dir);
    if let Some(published) = published_above(&dir, &[]) {
        let message = format!(
            "`{}` is in `{}`, which is published: everybody could read the store\n  help: name a folder elsewhere",
            args.dir.display(),
            published.display()
        );
        bail!(RestoreRefused(message));
    }
    let manifest = Manifest::read(&backup)?;
    check_empty(&dir, &manifest)?;
    let contents = View::open(&contents_of(&backup))?;
    let damaged =
        verify(&backup, &contents, &manifest, &mut HashSet::new(), &AtomicBool::new(false))?;
    if let Some(first) = damaged.first().filter(|_| !args.without_damaged) {
        bail!("{}", damaged_content(first, damaged.len()));
    }
    // Restore into the existing folder, which may be a mount point and retains its mode and owner. The database is written
    // last: a folder without a database is not a store.
    let making = dir.join(MAKING);
    crate::there::make_folder(&making)
        .with_context(|| format!("cannot make `{}`", making.display()))?;
    let folder = abreast_folder::Folder::open(&making)?;
    let Some(lock) = folder.root().lock(LOCK.as_bytes())? else {
        bail!(busy(&dir));
    };
    // Another restore may have been completed meanwhile.
    if let Err(error) = check_empty(&dir, &manifest) {
        let _ = fs::remove_dir_all(&making);
        return Err(error);
    }
    let left = fs::read_dir(&dir)?.collect::<io::Result<Vec<_>>>()?;
    for entry in left.iter().filter(|entry| entry.file_name() != MAKING) {
        // The restore that was interrupted had put it there: the folder was empty.
        remove(&entry.path()).context("cannot remove what an interrupted restore left")?;
    }
    for entry in fs::read_dir(&making)?.collect::<io::Result<Vec<_>>>()? {
        if entry.file_name() != LOCK {
            remove(&entry.path()).context("cannot remove what an interrupted restore left")?;
        }
    }
    for file in &manifest.files {
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
        if copy_content(&contents, &kept, &id, length, false)
            .context("cannot copy kept contents")?
            .is_none()
        {
            bail!("the kept content {id} is missing in the backup");
        }
    }
    kept.sync()?;
    drop(kept);
    if !damaged.is_empty() {
        drop_contents(&database, &damaged)?;
    }
    if !args.same_log {
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
    Ok((manifest, damaged.len() as u64))
}

/// Refuses a folder that contains other files than an interrupted restore of the same backup left.
fn check_empty(dir: &Path, manifest: &Manifest) -> Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("cannot read `{}`", dir.display()))?,
    };
    let making = dir.join(MAKING);
    // An interrupted restore may not have created its lock file yet.
    let has_begun = making.join(LOCK).is_file()
        || fs::read_dir(&making).is_ok_and(|mut entries| entries.next().is_none());
    let is_begun = has_begun && !dir.join(DATABASE).exists();
    let of_store = |name: &std::ffi::OsStr| {
        let first =
            |file: &FileEntry| file.path.split('/').next().is_some_and(|first| name == first);
        name == MAKING || name == "contents" || manifest.files.iter().any(first)
    };
    let mut is_own = true;
    let mut is_empty = true;
    for entry in entries {
        (is_empty, is_own) = (false, is_own && is_begun && of_store(&entry?.file_name()));
    }
    if !is_empty && !is_own {
        let message = format!(
            "`{}` is not empty\n  help: name an empty folder, or move its contents away",
            dir.display()
        );
        bail!(RestoreRefused(message));
    }
    Ok(())
}

fn busy(dir: &Path) -> abreast_core::LogError {
    let message =
        format!("another process restores a store into `{}`\n  help: wait for it", dir.display());
    abreast_core::LogError::new(abreast_core::ErrorKind::Busy, message)
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
