//! A consistent copy of a Source's store, also while it is served.
//!
//! ```text
//! BACKUPS/contents/                  retained contents, once for all backups: packed as in the store
//! BACKUPS/20260131T120000.000000Z/   one backup: manifest.json, source.db, hub.db, and what else is not derived
//! ```
//!
//! Contents are copied before the database, and other referenced files after the database, so every
//! row has its content. A backup gets its final name when all its files are durable.

mod listing;
pub(crate) mod manifest;
mod prune;
mod retention;
pub(crate) mod verify;

pub use listing::{ListedBackup, list_backups};
pub use manifest::{BackedUpSet, refuse_backup};
pub use prune::{KeptBackup, Pruning, UntouchedFolder};
pub use retention::Retention;

use crate::place::{Context as _, Error, HUB_DATABASE, Place, ReadShare, Result, StateFolders};
use crate::place::{holder_of, there};
use abreast_contents::{Contents, ErrorKind, View, digest};
use abreast_core::contents::ContentStore as _;
use abreast_core::{Clock as _, ContentId, Meter, SystemClock};
use abreast_destination::{published_above, resolved};
use abreast_folder::LastBackup;
use abreast_store::NeededContents;
use abreast_store::backup::{check_copy, copy, copy_hub, created_sets};
use manifest::{BackedUpFile, BackupManifest, as_text};
use manifest::{DATABASE, FORMAT, MAKING, MANIFEST, is_candidate, is_unfinished, next_number};
use serde::Serialize;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Times that a database is copied because contents went while they were copied.
const ATTEMPTS: u32 = 5;
/// Derived or temporary data.
const LEFT_OUT: [&str; 9] = [
    ".abreast-restoring",
    "contents",
    "documents",
    "dumps",
    LastBackup::NAME,
    "last-backup.new",
    "snapshots",
    "temporary",
    "tmp",
];
/// Files and folders of a store, except databases and contents, that a backup contains.
const OWN: [&str; 5] = ["archives", "book", "notified.json", "served.json", "tokens.json"];
/// Largest length of [`BackupReport::not_in_backup`].
const NAMES_MAX: usize = 20;
/// Percent of the contents of earlier backups that are read, unless more are asked for.
const READ_SHARE: f64 = 5.0;
/// Folders in folders of a store, at most.
const DEPTH_MAX: u32 = 32;

/// The store to copy, and the folder of backups.
#[derive(Clone, Debug)]
pub struct BackupOptions {
    /// The folder of a store, or a published folder with its store in `.abreast`.
    pub place: Place,
    /// The folder of backups; created if it is missing.
    pub backups: PathBuf,
    /// The share of contents of earlier backups that are read, and replaced if damaged.
    pub read: ReadShare,
    /// Which backups are retained after the new one is complete; without any rule, all are.
    pub keep: Retention,
    /// Shows how far the backup is.
    pub meter: Meter,
}

impl BackupOptions {
    /// Creates options that read one in twenty of the contents of earlier backups, and retain all backups.
    pub fn new(place: impl Into<Place>, backups: impl Into<PathBuf>) -> Self {
        Self {
            place: place.into(),
            backups: backups.into(),
            read: ReadShare::percent(READ_SHARE),
            keep: Retention::default(),
            meter: Meter::default(),
        }
    }
}

/// The new backup, and the copied contents.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "summary")]
pub struct BackupReport {
    /// The folder of the new backup.
    #[serde(serialize_with = "as_text")]
    pub backup: PathBuf,
    /// The sets of the store.
    pub sets: Vec<BackedUpSet>,
    /// Number of contents that no earlier backup had.
    pub contents_copied: u64,
    /// Sum of the lengths of these contents, in bytes.
    pub bytes_copied: u64,
    /// Number of contents that an earlier backup had, which were not copied.
    pub contents_reused: u64,
    /// Sum of the lengths of these contents, in bytes.
    pub bytes_reused: u64,
    /// Number of damaged contents of earlier backups that were replaced.
    pub contents_replaced: u64,
    /// Files and folders next to the store that are not a part of it, at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_in_backup: Vec<String>,
    /// Why the time of the backup could not be recorded in the folder of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<String>,
    /// Folders of incomplete backups that cannot be removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unremoved: Vec<UntouchedFolder>,
    /// The backups that were retained and removed; `None` without a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruning: Option<Pruning>,
}

/// Numbers of contents, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct CopiedContents {
    copied: u64,
    copied_bytes: u64,
    /// Already in the folder of backups.
    reused: u64,
    reused_bytes: u64,
    /// Copied again because the content in the folder of backups was damaged.
    replaced: u64,
}

impl CopiedContents {
    /// Counts one of the contents in the store; false if the store does not have it.
    fn count(&mut self, copied: Option<Copied>, length: u64) -> bool {
        match copied {
            None => return false,
            Some(Copied::New) => {
                (self.copied, self.copied_bytes) = (self.copied + 1, self.copied_bytes + length);
            }
            Some(Copied::Already) => {
                (self.reused, self.reused_bytes) = (self.reused + 1, self.reused_bytes + length);
            }
            Some(Copied::Replaced) => self.replaced += 1,
        }
        true
    }

    /// Counts a content that a row needs, and that was counted before unless it is new.
    fn count_needed(&mut self, copied: Option<Copied>, length: u64) -> bool {
        copied == Some(Copied::Already) || self.count(copied, length)
    }
}

/// Copies a store into a folder of backups.
///
/// # Errors
/// The store is missing or damaged; the folder of backups belongs to another store, is published, or is in use; the disk
/// failed or is full.
pub fn backup(options: &BackupOptions) -> Result<BackupReport> {
    let store = &store_of(options)?;
    let (backups, reads) = (&options.backups, options.read.selection());
    there::make_folder(backups).with_context(|| format!("cannot make `{}`", backups.display()))?;
    let folder = abreast_folder::Folder::open(backups)?;
    let Some(_lock) = folder
        .root()
        .lock(b"backup.lock")
        .with_context(|| format!("cannot lock the backups in `{}`", backups.display()))?
    else {
        let pid = holder_of(&backups.join("backup.lock"))
            .map(|pid| format!(" (process {pid})"))
            .unwrap_or_default();
        return Err(Error::InUse(format!(
            "another backup{pid} is writing to `{}`\n  help: wait for it",
            backups.display()
        )));
    };
    let (has_remains, mut unremoved) = remove_unfinished(backups)?;
    let number = next_number(backups, &sets_of(&database_of(store, DATABASE)?)?)?;
    let created = SystemClock.now();
    let name = created.to_string().replace(['-', ':'], "");
    let (making, done) = (backups.join(format!("{MAKING}{name}")), backups.join(&name));
    fs::create_dir(&making).with_context(|| format!("cannot make `{}`", making.display()))?;
    // Before the log: the log's copy then has all positions that the hub refers to.
    if store.join(HUB_DATABASE).is_file() {
        copy_hub(&database_of(store, HUB_DATABASE)?, &making.join(HUB_DATABASE))?;
    }
    let mut contents = CopiedContents::default();
    let (from, to) =
        (View::open(&store.join("contents"))?, Contents::open(&backups.join("contents"))?);
    let meter = &options.meter;
    meter.begin("copying");
    expect_contents(meter, &from)?;
    from.visit(&mut |id, length| {
        let _named = meter.item(|| id.to_string());
        meter.add(1, length);
        let is_read = reads(&id.to_string());
        contents.count(copy_content(&from, &to, &id, length, is_read)?, length);
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
            let copied = copy_content(&from, &to, &id, length, false);
            if !contents.count_needed(copied.context("cannot copy kept contents")?, length) {
                missing = Some(id);
            }
        }
        let Some(id) = missing else { break };
        if attempt >= ATTEMPTS {
            return Err(Error::Damaged(format!(
                "the kept content {id} is missing (help: `abreast check` lists all that are, `abreast repair` repairs the store)"
            )));
        }
        fs::remove_file(&database).context("cannot copy the database again")?;
    }
    to.sync().context("cannot make the copied contents durable")?;
    let facts = check_copy(&database)?;
    let not_in_backup = copy_own(store, &making).context("cannot copy the files of the store")?;
    let mut files = Vec::new();
    list(&making, Path::new(""), &mut files).context("cannot read the backup again")?;
    let mut sets = sets_of(&database)?;
    for set in &mut sets {
        if let Some(facts) = facts.iter().find(|facts| facts.slug == set.name) {
            (set.position, set.resources) = (facts.position, facts.resources);
        }
    }
    let mut manifest = BackupManifest {
        format: FORMAT,
        created: created.to_string(),
        number,
        program: format!("abreast {}", env!("CARGO_PKG_VERSION")),
        sets,
        files,
        blake3: None,
    };
    fs::write(making.join(MANIFEST), manifest.seal()?).context("cannot write the manifest")?;
    let synced = abreast_folder::Folder::open(backups)?.root().sync_filesystem();
    synced.context("cannot make the backup durable")?;
    verify::verify_files(&making, &manifest, meter).context("cannot verify the new backup")?;
    fs::rename(&making, &done).context("cannot name the backup")?;
    File::open(backups)
        .and_then(|folder| folder.sync_all())
        .context("cannot make the backup durable")?;
    let unrecorded = LastBackup { began: created.as_micros() }.write(store).err();
    let pruning = if options.keep.is_none() {
        None
    } else {
        let mut pruning = prune::plan(backups, &manifest, Some(&done), options.keep)?;
        pruning.untouched.append(&mut unremoved);
        prune::prune(backups, &done, &to, &mut pruning, has_remains).with_context(|| {
            format!(
                "the backup `{}` is complete, but earlier ones cannot be removed",
                done.display()
            )
        })?;
        Some(pruning)
    };
    Ok(BackupReport {
        backup: done,
        sets: manifest.sets,
        contents_copied: contents.copied,
        bytes_copied: contents.copied_bytes,
        contents_reused: contents.reused,
        bytes_reused: contents.reused_bytes,
        contents_replaced: contents.replaced,
        unrecorded: unrecorded.map(|error| error.to_string()),
        not_in_backup,
        unremoved,
        pruning,
    })
}

/// Sets the number and bytes of all contents in a meter that is read.
pub(crate) fn expect_contents(meter: &Meter, contents: &View) -> Result<()> {
    if !meter.is_listening() {
        return Ok(());
    }
    let (mut total, mut bytes) = (0, 0);
    contents.visit(&mut |_, length| {
        (total, bytes) = (total + 1, bytes + length);
        Ok(())
    })?;
    meter.expect(total, bytes);
    Ok(())
}

/// Decides which backups [`backup`] would retain and remove now, and makes and removes nothing.
///
/// # Errors
/// As [`backup`], without the errors of writing.
pub fn plan_backup(options: &BackupOptions) -> Result<Pruning> {
    let (store, backups) = (store_of(options)?, &options.backups);
    let sets = sets_of(&database_of(&store, DATABASE)?)?;
    let exists = there::is_dir(backups)?;
    let new = BackupManifest {
        format: FORMAT,
        created: SystemClock.now().to_string(),
        number: if exists { next_number(backups, &sets)? } else { 1 },
        program: String::new(),
        sets,
        files: Vec::new(),
        blake3: None,
    };
    if exists {
        return prune::plan(backups, &new, None, options.keep);
    }
    let reasons = vec!["newest".to_owned()];
    let kept = vec![KeptBackup { backup: None, reasons }];
    Ok(Pruning { kept, ..Pruning::default() })
}

/// The store to copy.
///
/// # Errors
/// There is none, or its backups must not be in the folder of backups.
fn store_of(options: &BackupOptions) -> Result<PathBuf> {
    let Some(store) = StateFolders::find(&options.place.folder)?.store else {
        return Err(Error::Usage(format!(
            "there is no store in `{}`\n  help: name the folder that has source.db; a copy needs no backup, `abreast sync` \
             makes it again",
            options.place.shown
        )));
    };
    let backups = &options.backups;
    if backups.exists() && !backups.is_dir() {
        return Err(Error::Usage(format!(
            "`{}` is a file, not a folder\n  help: name a folder for backups",
            backups.display()
        )));
    }
    if is_candidate(backups) {
        return Err(Error::Usage(format!(
            "`{}` is one backup, not a folder of backups\n  help: name the folder that contains it, or another one",
            backups.display()
        )));
    }
    refuse_inside(&store, backups)?;
    Ok(store)
}

/// A backup in the store would be part of the next one, and one in a published folder could be read by everybody.
fn refuse_inside(store: &Path, backups: &Path) -> Result<()> {
    let help = "name a folder elsewhere, best on another disk";
    if resolved(backups).starts_with(resolved(store)) {
        let (backups, store) = (backups.display(), store.display());
        let message = format!("`{backups}` is in the store `{store}`\n  help: {help}");
        return Err(Error::Usage(message));
    }
    if let Some(published) = published_above(backups, &[]) {
        let (backups, published) = (backups.display(), published.display());
        let message = format!(
            "`{backups}` is in `{published}`, which is published: everybody could read the backup\n  help: {help}"
        );
        return Err(Error::Usage(message));
    }
    Ok(())
}

/// Resolves symbolic links to a database: SQLite stores the newest changes in a file next to the
/// database itself, not next to a link.
fn database_of(store: &Path, name: &str) -> Result<PathBuf> {
    let path = store.join(name);
    path.canonicalize().with_context(|| format!("cannot find `{}`", path.display()))
}

/// Removes what a killed run left; true if there was something. What cannot be removed does not prevent new backups.
fn remove_unfinished(backups: &Path) -> Result<(bool, Vec<UntouchedFolder>)> {
    let (mut has_remains, mut unremoved) = (false, Vec::new());
    for entry in fs::read_dir(backups)? {
        let entry = entry?;
        if is_unfinished(&entry.file_name().to_string_lossy()) {
            if let Err(error) = fs::remove_dir_all(entry.path()) {
                unremoved.push(UntouchedFolder::unremovable(entry.path(), &error));
            }
            has_remains = true;
        }
    }
    Ok((has_remains, unremoved))
}

/// The sets of a store, without their numbers.
fn sets_of(database: &Path) -> Result<Vec<BackedUpSet>> {
    let sets = created_sets(database)?.into_iter().map(|(name, created)| BackedUpSet {
        name,
        log_created: Some(created.as_micros()),
        position: 0,
        resources: 0,
    });
    Ok(sets.collect())
}

/// How a content came to be in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// The folder already had the content.
    Already,
    /// The content was missing and was copied.
    New,
    /// The content in the folder was damaged and was replaced.
    Replaced,
}

/// Copies a content unless `to` already has it; `None` if the store does not have the content. With
/// `is_read`, an existing content is read, and replaced if damaged. A copied content is read again.
pub(crate) fn copy_content(
    from: &View,
    to: &Contents,
    id: &ContentId,
    length: u64,
    is_read: bool,
) -> io::Result<Option<Copied>> {
    let is_there = to.length(id)? == Some(length);
    if is_there && (!is_read || to.is_whole(id)?) {
        return Ok(Some(Copied::Already));
    }
    let copied = match from.open_read(id) {
        Ok(mut content) => match content.file() {
            Some(file) => to.put_file(file, u64::MAX, &mut |_| Ok(())),
            None => to.put_reader(&mut content, u64::MAX),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => Err(error),
    }?;
    if copied.id() == *id {
        if !to.is_whole(id)? {
            return Err(io::Error::other(format!(
                "the kept content {id} was copied, and is read with another digest (help: check the disk of the backups)"
            )));
        }
        return Ok(Some(if is_there { Copied::Replaced } else { Copied::New }));
    }
    let other = copied.id();
    drop(copied);
    to.remove(&other)?;
    Err(io::Error::other(format!(
        "the kept content {id} is damaged (help: `abreast check --read-data`)"
    )))
}

/// Copies the archives of lists, tokens and records of a store, and lists the other files and folders next to it.
fn copy_own(store: &Path, to: &Path) -> Result<Vec<String>> {
    let mut others = Vec::new();
    let task = || format!("cannot read `{}`", store.display());
    for entry in fs::read_dir(store).with_context(task)? {
        let name = entry.with_context(task)?.file_name().to_string_lossy().into_owned();
        if OWN.contains(&&*name) {
            copy_all(store, Path::new(&name), 0, to)
                .with_context(|| format!("cannot copy `{}`", store.join(&name).display()))?;
        } else if !is_of_store(&name) {
            others.push(name);
        }
    }
    others.sort();
    others.truncate(NAMES_MAX);
    Ok(others)
}

/// Whether a file or folder is a part of the store in its folder, or of a copy's state.
pub(crate) fn is_of_store(name: &str) -> bool {
    let is_database =
        [DATABASE, HUB_DATABASE, "mirror.db"].iter().any(|database| name.starts_with(database));
    is_database || OWN.contains(&name) || LEFT_OUT.contains(&name) || is_passing(Path::new(name))
}

/// Locks and sockets.
pub(crate) fn is_passing(path: &Path) -> bool {
    matches!(path.extension().and_then(|extension| extension.to_str()), Some("lock" | "sock"))
}

/// Copies a file, or a folder with everything in it; also where a symbolic link leads to them.
fn copy_all(store: &Path, path: &Path, depth: u32, to: &Path) -> io::Result<()> {
    let from = store.join(path);
    if depth > DEPTH_MAX {
        return Err(io::Error::other(format!("folders are too deep at `{}`", from.display())));
    }
    let kind = match fs::metadata(&from) {
        Ok(facts) => facts.file_type(),
        // A server replaced it just now.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if kind.is_dir() {
        let (real, own) = (from.canonicalize()?, resolved(store));
        if from.is_symlink() && (own.starts_with(&real) || real.starts_with(&own)) {
            let message = format!("the link `{}` leads back to the store", from.display());
            return Err(io::Error::other(message));
        }
        fs::create_dir_all(to.join(path))?;
        for entry in fs::read_dir(&from)? {
            copy_all(store, &path.join(entry?.file_name()), depth + 1, to)?;
        }
    } else if kind.is_file() && !is_passing(path) {
        match fs::copy(&from, to.join(path)) {
            // A server replaced the file since the folder was read; its data is usable without it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            copied => drop(copied?),
        }
    }
    Ok(())
}

fn list(root: &Path, below: &Path, files: &mut Vec<BackedUpFile>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(root, &path, files)?;
        } else {
            let (id, length) = digest(&entry.path())?;
            files.push(BackedUpFile {
                path: path.to_string_lossy().into_owned(),
                length,
                blake3: id.to_string(),
            });
        }
    }
    Ok(())
}
