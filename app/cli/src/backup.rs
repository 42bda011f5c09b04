//! `abreast backup`: a consistent copy of a Source's store, also while it is served.
//!
//! ```text
//! BACKUPS/contents/                  kept contents, once for all backups: packed as in the store
//! BACKUPS/20260131T120000.000000Z/   one backup: manifest.json, source.db, hub.db, and what else is not derived
//! ```
//!
//! Contents are copied before the database is, and what it names besides afterwards: no row is
//! without its content. A backup gets its name when all of it is durable.

use crate::config::UsageError;
use crate::logging;
use crate::repair::code_of;
use crate::state_folders::{HUB_DATABASE, StateFolders, holder_of};
use crate::terminal::line;
use abreast_contents::{Content, Contents, ErrorKind, View, digest};
use abreast_core::{Clock as _, ContentId, SystemClock};
use abreast_destination::{published_above, resolved};
use abreast_store::NeededContents;
use abreast_store::backup::{check_copy, copy};
use abreast_store::hub::copy_hub;
use abreast_webtypes::count;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast backup /var/lib/abreast /mnt/backups/papers
  abreast backup ./papers /mnt/backups/papers --json
  abreast restore /mnt/backups/papers /var/lib/abreast

The server may be running. Later runs copy only contents that are not in BACKUPS yet. Derived data is left
out: rendered documents, dumps. The published folder itself is not copied.

Exit codes: 0 done, 1 the store is damaged, 2 usage, 10 another backup is running, 13 disk.";

/// Times that a database is copied because contents went while they were copied.
const ATTEMPTS: u32 = 5;
/// Derived or temporary data.
const LEFT_OUT: [&str; 7] =
    [".abreast-restoring", "contents", "documents", "dumps", "snapshots", "temporary", "tmp"];
/// Since small contents are packed. Backups of format 1 are restored as well.
pub(crate) const FORMAT: u32 = 2;
pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const DATABASE: &str = "source.db";
const MAKING: &str = "making-";
/// Folders in folders of a store, at most.
const DEPTH_MAX: u32 = 32;

/// Options of `backup`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct BackupArgs {
    /// Folder of a store, or a published folder with its store in .abreast
    dir: String,
    /// Folder of backups; made if it is missing
    backups: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Whether a folder is one backup.
pub(crate) fn is_backup(dir: &Path) -> bool {
    let manifest = fs::read(dir.join(MANIFEST)).ok();
    let manifest = manifest.and_then(|text| serde_json::from_slice::<Manifest>(&text).ok());
    manifest.is_some_and(|manifest| manifest.files.iter().any(|file| file.path == DATABASE))
}

/// Refuses a folder that is one backup, for a command that needs a store.
///
/// # Errors
/// It is one.
pub(crate) fn refuse_backup(dir: &Path) -> Result<()> {
    if is_backup(dir) {
        let name = dir.display();
        let message = format!(
            "`{name}` is a backup, which would be altered\n  help: `abreast restore {name} DIR` makes a store of it; `abreast check {name}` reads it"
        );
        bail!(UsageError(message));
    }
    Ok(())
}

/// The complete backups in a folder, oldest first; the folder itself, if it is one.
pub(crate) fn backups_in(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.join(MANIFEST).is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?.path();
        let is_unfinished =
            entry.file_name().is_some_and(|name| is_unfinished(&name.to_string_lossy()));
        if !is_unfinished && entry.join(MANIFEST).is_file() {
            found.push(entry);
        }
    }
    found.sort();
    Ok(found)
}

/// Contents of a backup.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Manifest {
    /// Of the format of backups: [`FORMAT`]; 1 had each content as a file.
    pub(crate) format: u32,
    pub(crate) created: String,
    pub(crate) program: String,
    pub(crate) sets: Vec<SetEntry>,
    pub(crate) files: Vec<FileEntry>,
}

impl Manifest {
    /// Prints a line for each set.
    pub(crate) fn print_sets(&self) {
        for set in &self.sets {
            let resources = count(set.resources, "resource");
            line(&format!("set {}: {resources}, up to position {}", set.name, set.position));
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct SetEntry {
    pub(crate) name: String,
    pub(crate) position: u64,
    pub(crate) resources: u64,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct FileEntry {
    /// Within the backup, components parted by `/`.
    pub(crate) path: String,
    pub(crate) length: u64,
    pub(crate) blake3: String,
}

/// Runs `backup`.
pub(crate) fn run(args: &BackupArgs) -> ExitCode {
    let Some(store) = StateFolders::find(&args.dir).store else {
        let error = anyhow::anyhow!(
            "there is no store in `{}`\n  help: name the folder that has source.db; a copy needs no backup, `abreast sync` \
             makes it again",
            args.dir
        );
        logging::failure(&error, 2);
        return ExitCode::from(2);
    };
    match backup(&store, &args.backups) {
        Ok((path, manifest, contents)) => {
            if args.json {
                line(
                    &json!({"type": "summary", "backup": path, "sets": manifest.sets, "contents_copied": contents})
                        .to_string(),
                );
            } else {
                manifest.print_sets();
                line(&format!("{} copied", count(contents, "content")));
                line(&format!("backup {}", path.display()));
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            let code = code_of(&error);
            logging::failure(&error, code);
            ExitCode::from(code)
        }
    }
}

fn backup(store: &Path, backups: &Path) -> Result<(PathBuf, Manifest, u64)> {
    if backups.exists() && !backups.is_dir() {
        bail!(UsageError(format!(
            "`{}` is a file, not a folder\n  help: name a folder for backups",
            backups.display()
        )));
    }
    refuse_inside(store, backups)?;
    fs::create_dir_all(backups).with_context(|| format!("cannot make `{}`", backups.display()))?;
    let folder = abreast_folder::Folder::open(backups)?;
    let Some(_lock) = folder.root().lock(b"backup.lock")? else {
        let pid = holder_of(&backups.join("backup.lock"))
            .map(|pid| format!(" (process {pid})"))
            .unwrap_or_default();
        return Err(abreast_core::LogError::new(
            abreast_core::ErrorKind::Busy,
            format!(
                "another backup{pid} is writing to `{}`\n  help: wait for it",
                backups.display()
            ),
        )
        .into());
    };
    remove_unfinished(backups)?;
    let created = SystemClock.now();
    let name = created.to_string().replace(['-', ':'], "");
    let (making, done) = (backups.join(format!("{MAKING}{name}")), backups.join(&name));
    fs::create_dir(&making).with_context(|| format!("cannot make `{}`", making.display()))?;
    // Before the log: the log's copy then has all positions that the hub refers to.
    if store.join(HUB_DATABASE).is_file() {
        copy_hub(&database_of(store, HUB_DATABASE)?, &making.join(HUB_DATABASE))?;
    }
    let mut copied = 0;
    let (from, to) =
        (View::open(&store.join("contents"))?, Contents::open(&backups.join("contents"))?);
    from.visit(&mut |id, length| {
        copied += u64::from(copy_content(&from, &to, &id, length)?.unwrap_or(false));
        Ok(())
    })
    .context("cannot copy kept contents")?;
    let database = making.join(DATABASE);
    let mut attempt = 0;
    loop {
        attempt += 1;
        copy(&database_of(store, DATABASE)?, &database)?;
        let mut missing = None;
        for needed in NeededContents::open(&database)? {
            let (id, length) = needed?;
            match copy_content(&from, &to, &id, length).context("cannot copy kept contents")? {
                Some(new) => copied += u64::from(new),
                None => missing = Some(id),
            }
        }
        let Some(id) = missing else { break };
        if attempt >= ATTEMPTS {
            bail!(
                "the kept content {id} is missing (help: `abreast check` lists all that are, `abreast repair` repairs the store)"
            );
        }
        fs::remove_file(&database).context("cannot copy the database again")?;
    }
    to.sync().context("cannot make the copied contents durable")?;
    let sets = check_copy(&database)?;
    copy_rest(store, Path::new(""), 0, &making)
        .context("cannot copy the other files of the store")?;
    let mut files = Vec::new();
    list(&making, Path::new(""), &mut files).context("cannot read the backup again")?;
    let sets = sets.into_iter().map(|set| SetEntry {
        name: set.slug,
        position: set.position,
        resources: set.resources,
    });
    let manifest = Manifest {
        format: FORMAT,
        created: created.to_string(),
        program: format!("abreast {}", env!("CARGO_PKG_VERSION")),
        sets: sets.collect(),
        files,
    };
    fs::write(making.join(MANIFEST), serde_json::to_vec_pretty(&manifest)?)
        .context("cannot write the manifest")?;
    let synced = abreast_folder::Folder::open(backups)?.root().sync_filesystem();
    synced.context("cannot make the backup durable")?;
    fs::rename(&making, &done).context("cannot name the backup")?;
    File::open(backups)
        .and_then(|folder| folder.sync_all())
        .context("cannot make the backup durable")?;
    Ok((done, manifest, copied))
}

/// A backup in the store would be part of the next one, and one in a published folder could be read by everybody.
fn refuse_inside(store: &Path, backups: &Path) -> Result<()> {
    let help = "name a folder elsewhere, best on another disk";
    if resolved(backups).starts_with(resolved(store)) {
        let (backups, store) = (backups.display(), store.display());
        bail!(UsageError(format!("`{backups}` is in the store `{store}`\n  help: {help}")));
    }
    if let Some(published) = published_above(backups, &[]) {
        let (backups, published) = (backups.display(), published.display());
        let message = format!(
            "`{backups}` is in `{published}`, which is published: everybody could read the backup\n  help: {help}"
        );
        bail!(UsageError(message));
    }
    Ok(())
}

/// Where a database really is: its newest changes are beside it, not beside a symbolic link to it.
fn database_of(store: &Path, name: &str) -> Result<PathBuf> {
    let path = store.join(name);
    path.canonicalize().with_context(|| format!("cannot find `{}`", path.display()))
}

/// Whether it is the name of a backup that is made: `making-20260131T120000.000000Z`.
pub(crate) fn is_unfinished(name: &str) -> bool {
    let is_like = |(found, byte): (u8, u8)| match byte {
        b'0' => found.is_ascii_digit(),
        byte => found == byte,
    };
    let form = b"00000000T000000.000000Z";
    let time = name.strip_prefix(MAKING).unwrap_or_default().as_bytes();
    time.len() == form.len() && time.iter().copied().zip(form.iter().copied()).all(is_like)
}

/// Remains of a killed backup.
fn remove_unfinished(backups: &Path) -> Result<()> {
    for entry in fs::read_dir(backups)? {
        let entry = entry?;
        if is_unfinished(&entry.file_name().to_string_lossy()) {
            fs::remove_dir_all(entry.path())
                .context("cannot remove what an earlier backup left")?;
        }
    }
    Ok(())
}

/// Copies a kept content unless it is there; `None` when the store does not have it.
pub(crate) fn copy_content(
    from: &View,
    to: &Contents,
    id: &ContentId,
    length: u64,
) -> io::Result<Option<bool>> {
    if to.length(id)? == Some(length) {
        return Ok(Some(false));
    }
    let copied = match from.open_read(id) {
        Ok(Content::File(file)) => to.put_file(&file, u64::MAX, &mut |_| Ok(())),
        Ok(Content::Bytes(bytes)) => to.put_bytes(bytes.get_ref()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => Err(error),
    }?;
    if copied.id() == *id {
        return Ok(Some(true));
    }
    let other = copied.id();
    drop(copied);
    to.remove(&other)?;
    Err(io::Error::other(format!(
        "the kept content {id} is damaged (help: `abreast check --read-data`)"
    )))
}

/// All other files that are not derived: archives of lists, tokens, the record of a static site; also where a symbolic link leads to
/// them.
fn copy_rest(store: &Path, below: &Path, depth: u32, to: &Path) -> io::Result<()> {
    if depth > DEPTH_MAX {
        let place = store.join(below);
        return Err(io::Error::other(format!("folders are too deep at `{}`", place.display())));
    }
    for entry in fs::read_dir(store.join(below))? {
        let entry = entry?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        let top = below.as_os_str().is_empty();
        let database =
            [DATABASE, HUB_DATABASE, "mirror.db"].iter().any(|name| text.starts_with(name));
        if top && (LEFT_OUT.contains(&&*text) || database) {
            continue;
        }
        let path = below.join(&name);
        let kind = match fs::metadata(entry.path()) {
            Ok(facts) => facts.file_type(),
            // A server replaced it just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if kind.is_dir() {
            let (real, own) = (entry.path().canonicalize()?, resolved(store));
            if entry.file_type()?.is_symlink() && (own.starts_with(&real) || real.starts_with(&own))
            {
                let link = entry.path();
                let message = format!("the link `{}` leads back to the store", link.display());
                return Err(io::Error::other(message));
            }
            fs::create_dir_all(to.join(&path))?;
            copy_rest(store, &path, depth + 1, to)?;
        } else if kind.is_file() && !text.ends_with(".lock") {
            match fs::copy(entry.path(), to.join(&path)) {
                // A server replaced it just now; what it belongs to is found without it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                copied => drop(copied?),
            }
        }
    }
    Ok(())
}

fn list(root: &Path, below: &Path, files: &mut Vec<FileEntry>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(root, &path, files)?;
        } else {
            let (id, length) = digest(&entry.path())?;
            files.push(FileEntry {
                path: path.to_string_lossy().into_owned(),
                length,
                blake3: id.to_string(),
            });
        }
    }
    Ok(())
}
