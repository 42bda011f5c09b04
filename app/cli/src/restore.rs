//! `abreast restore`: a store as a backup has it, verified first, never over one that is there.

use crate::backup::{FORMAT, MANIFEST, Manifest, copy_content};
use crate::logging;
use crate::repair::code_of;
use crate::state_folders::HUB_DATABASE;
use crate::terminal::line;
use abreast_contents::{Condition, Contents, View, digest};
use abreast_core::{Clock as _, SystemClock};
use abreast_store::NeededContents;
use abreast_store::backup::{check_copy, restart_log};
use abreast_store::hub::{check_hub_copy, restart_hub_log};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast restore /mnt/backups/papers /var/lib/abreast
  abreast restore /mnt/backups/papers/20260131T120000.000000Z /var/lib/abreast
  abreast restore /mnt/backups/papers /srv/new/.abreast --same-log

BACKUP is one backup, or a folder of backups, of which the newest is used. All of it is verified before anything is written.
Changes recorded after the backup are not in it. The log is therefore restarted: Destinations notice it, and compare everything
once. Use --same-log only if nothing was recorded after the backup, as in a move to another machine.

Exit codes: 0 done, 1 the backup is damaged, 2 usage or DIR is not empty, 13 disk.";

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
        Ok(manifest) => {
            if args.json {
                line(
                    &json!({"type": "summary", "dir": args.dir, "created": manifest.created, "sets": manifest.sets,
                    "same_log": args.same_log})
                    .to_string(),
                );
            } else {
                manifest.print_sets();
                line(&format!("restored as of {}", manifest.created));
                if !args.same_log {
                    line("the log was restarted: Destinations compare everything once");
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

fn restore(args: &RestoreArgs) -> Result<Manifest> {
    if !args.backup.is_dir() {
        bail!(RestoreRefused(format!("there is no backup `{}`", args.backup.display())));
    }
    let backup = newest(&args.backup)?;
    let contents = backup.parent().unwrap_or(Path::new("..")).join("contents");
    let dir = std::path::absolute(&args.dir)?;
    if fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) {
        let message = format!(
            "`{}` is not empty\n  help: name an empty folder, or move its contents away",
            dir.display()
        );
        bail!(RestoreRefused(message));
    }
    let manifest = fs::read(backup.join(MANIFEST))
        .with_context(|| format!("cannot read the manifest of `{}`", backup.display()))?;
    let manifest: Manifest = serde_json::from_slice(&manifest).map_err(|error| {
        anyhow::anyhow!("the manifest of `{}` is damaged: {error}", backup.display())
    })?;
    if !(1..=FORMAT).contains(&manifest.format) {
        bail!(
            "the backup has format {}, this program reads 1 to {FORMAT}\n  help: use the newer program",
            manifest.format
        );
    }
    let contents = View::open(&contents)?;
    verify(&backup, &contents, &manifest)?;
    // Beside its place, so that it appears there at once and whole.
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let making = dir.with_file_name(format!("{name}.restoring"));
    if making.exists() {
        fs::remove_dir_all(&making).context("cannot remove what an interrupted restore left")?;
    }
    fs::create_dir_all(&making).with_context(|| format!("cannot make `{}`", making.display()))?;
    for file in &manifest.files {
        copy_to(&backup.join(&file.path), &making.join(&file.path))
            .with_context(|| format!("cannot copy `{}`", file.path))?;
    }
    let database = making.join("source.db");
    let kept = Contents::open(&making.join("contents"))?;
    for needed in NeededContents::open(&database)? {
        let (id, length) = needed?;
        if copy_content(&contents, &kept, &id, length)
            .context("cannot copy kept contents")?
            .is_none()
        {
            bail!("the kept content {id} is missing in the backup");
        }
    }
    kept.sync()?;
    drop(kept);
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
    fs::rename(&making, &dir)
        .with_context(|| format!("cannot put the store into `{}`", dir.display()))?;
    if let Some(parent) = dir.parent() {
        fs::File::open(parent)
            .and_then(|parent| parent.sync_all())
            .context("cannot make the store durable")?;
    }
    Ok(manifest)
}

/// The backup itself, or the newest of a folder of them.
fn newest(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path)?;
    if path.join(MANIFEST).is_file() {
        return Ok(path);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(&path).with_context(|| format!("cannot read `{}`", path.display()))? {
        let entry = entry?.path();
        let making =
            entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with("making-"));
        if !making && entry.join(MANIFEST).is_file() {
            found.push(entry);
        }
    }
    found.sort();
    found.pop().ok_or_else(|| {
        RestoreRefused(format!("there is no complete backup in `{}`", path.display())).into()
    })
}

fn verify(backup: &Path, contents: &View, manifest: &Manifest) -> Result<()> {
    for file in &manifest.files {
        let path = Path::new(&file.path);
        if !path.components().all(|component| matches!(component, Component::Normal(_))) {
            bail!("the manifest names `{}`, which is outside of the backup", file.path);
        }
        let path = backup.join(path);
        let (id, length) =
            digest(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        if length != file.length || id.to_string() != file.blake3 {
            bail!("`{}` is not as it was backed up\n  help: use an earlier backup", path.display());
        }
    }
    check_copy(&backup.join("source.db"))?;
    for needed in NeededContents::open(&backup.join("source.db"))? {
        let (id, _) = needed?;
        if !matches!(contents.examine(&id), Ok(Condition::Whole | Condition::RecordDamaged)) {
            bail!(
                "the kept content {id} is missing or damaged in the backup\n  help: use an earlier backup"
            );
        }
    }
    if backup.join(HUB_DATABASE).is_file() {
        check_hub_copy(&backup.join(HUB_DATABASE))?;
    }
    Ok(())
}

fn copy_to(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).map(drop)
}
