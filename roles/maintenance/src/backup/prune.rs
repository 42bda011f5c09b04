//! Removal of old backups, and of the contents that only they needed.
//!
//! A backup gets the name of an incomplete one before it is removed, so that a killed run leaves no backup without a part
//! of its files. Its contents are removed after that, unless a row of any remaining backup needs them, also of a backup of
//! another store.

use crate::backup::manifest::{BackupManifest, DATABASE, MAKING, as_text};
use crate::backup::manifest::{is_candidate, is_time, is_unfinished, remaining_in};
use crate::backup::retention::{BackupTime, Retention};
use crate::place::{Context as _, Error, Result};
use abreast_contents::Contents;
use abreast_core::ContentId;
use abreast_core::contents::ContentStore as _;
use abreast_store::NeededContents;
use serde::Serialize;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Addresses of contents in memory, at least, until each backup is asked for them: 32 bytes each.
const BATCH: usize = 1_000_000;

/// Which backups of a folder are retained, and which are removed.
#[derive(Debug, Default, Serialize)]
pub struct Pruning {
    /// Backups that are retained, from the newest.
    pub kept: Vec<KeptBackup>,
    /// Backups that no rule retains, from the newest.
    #[serde(serialize_with = "as_texts")]
    pub removed: Vec<PathBuf>,
    /// Folders that may be backups of another store, or something else, and those that cannot be removed.
    pub untouched: Vec<UntouchedFolder>,
    /// Number of contents that were removed, because no backup needs them.
    pub contents_removed: u64,
    /// Why no contents were removed, if a backup that may need them cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents_left: Option<String>,
}

/// A backup that is retained.
#[derive(Debug, Serialize)]
pub struct KeptBackup {
    /// The folder of the backup; `None` for the backup that a dry run does not make.
    #[serde(serialize_with = "as_text_or_null")]
    pub backup: Option<PathBuf>,
    /// The rules that retain it, such as `daily 2026-01-31`.
    pub reasons: Vec<String>,
}

/// A folder that is not removed, because it may not be a backup of this store, or cannot be removed.
#[derive(Debug, Serialize)]
pub struct UntouchedFolder {
    /// The folder in the folder of backups.
    #[serde(serialize_with = "as_text")]
    pub folder: PathBuf,
    /// Why it is not removed.
    pub reason: String,
}

fn as_texts<S: serde::Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn as_text_or_null<S: serde::Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_deref().map(Path::to_string_lossy).serialize(serializer)
}

impl UntouchedFolder {
    /// A folder whose removal failed.
    pub(crate) fn unremovable(folder: PathBuf, error: &std::io::Error) -> Self {
        Self { folder, reason: format!("it cannot be removed: {error}") }
    }
}

/// A backup of this store.
struct Own {
    /// `None` for the backup that a dry run does not make.
    path: Option<PathBuf>,
    order: (u64, String),
    time: BackupTime,
}

/// Decides which backups in a folder are retained. `of` is the manifest of the newest backup, at `path`: a dry run has not
/// made this backup.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn plan(
    backups: &Path,
    of: &BackupManifest,
    path: Option<&Path>,
    keep: Retention,
) -> Result<Pruning> {
    let mut pruning = Pruning::default();
    let mut leave = |folder: &Path, reason: &str| {
        pruning
            .untouched
            .push(UntouchedFolder { folder: folder.to_owned(), reason: reason.to_owned() });
    };
    let mut known = Vec::new();
    for folder in folders_in(backups)? {
        let name = folder.file_name().unwrap_or_default();
        if path == Some(&*folder) || name == "contents" || is_unfinished(&name.to_string_lossy()) {
            continue;
        }
        if !is_candidate(&folder) {
            leave(&folder, "it is not a complete backup");
            continue;
        }
        match BackupManifest::read(&folder) {
            Ok(_) if folder.is_symlink() => leave(&folder, "it is a symbolic link"),
            Ok(_) if !is_time(name.as_encoded_bytes()) => leave(&folder, "it was renamed"),
            Ok(manifest) => known.push((folder, manifest)),
            Err(error) => leave(&folder, &error.text()),
        }
    }
    let mut newest_first: Vec<Own> = Vec::new();
    let add = |path: Option<PathBuf>, manifest: &BackupManifest| {
        let order = (manifest.number, manifest.created.clone());
        BackupTime::parse(&manifest.created).map(|time| Own { path, order, time })
    };
    newest_first.extend(add(path.map(Path::to_owned), of));
    for (folder, manifest, is_own) in of_this_store(of, known) {
        if !is_own && manifest.has_logs() {
            leave(&folder, "it is a backup of another store");
        } else if !is_own {
            leave(&folder, "an earlier version made it, which did not record the store");
        } else if let Some(own) = add(Some(folder.clone()), &manifest) {
            newest_first.push(own);
        } else {
            leave(&folder, "its manifest states no time");
        }
    }
    newest_first.sort_by(|one, other| other.order.cmp(&one.order));
    let times: Vec<_> = newest_first.iter().map(|own| own.time.clone()).collect();
    for (own, reasons) in newest_first.into_iter().zip(keep.reasons(&times)) {
        match own.path {
            Some(path) if reasons.is_empty() => pruning.removed.push(path),
            backup => pruning.kept.push(KeptBackup { backup, reasons }),
        }
    }
    Ok(pruning)
}

/// The folders in a folder, by name.
fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let reading = || format!("cannot read `{}`", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Finds the backups of the store of `of`: backups with a log in common with it, or with another one that was found.
/// The name of a set alone proves nothing.
fn of_this_store(
    of: &BackupManifest,
    mut others: Vec<(PathBuf, BackupManifest)>,
) -> Vec<(PathBuf, BackupManifest, bool)> {
    let mut own: Vec<(PathBuf, BackupManifest)> = Vec::new();
    loop {
        let shares = |(_, one): &mut (PathBuf, BackupManifest)| {
            one.shares_log(of) || own.iter().any(|(_, known)| one.shares_log(known))
        };
        let found: Vec<_> = others.extract_if(.., shares).collect();
        if found.is_empty() {
            break;
        }
        own.extend(found);
    }
    let own = own.into_iter().map(|(path, manifest)| (path, manifest, true));
    own.chain(others.into_iter().map(|(path, manifest)| (path, manifest, false))).collect()
}

/// Removes the backups of a plan, and the contents that no remaining backup needs. With `has_remains`, an earlier run was
/// interrupted, and may have left contents that no backup needs. A backup that cannot be removed is reported. No contents are
/// removed unless the new backup, `made`, is among the remaining ones.
///
/// # Errors
/// The folder cannot be synced, or contents cannot be removed.
pub(crate) fn prune(
    backups: &Path,
    made: &Path,
    contents: &Contents,
    pruning: &mut Pruning,
    has_remains: bool,
) -> Result<()> {
    let mut renamed = Vec::new();
    for old in std::mem::take(&mut pruning.removed) {
        let name = old.file_name().unwrap_or_default().to_string_lossy();
        let new = backups.join(format!("{MAKING}{name}"));
        match fs::rename(&old, &new) {
            Ok(()) => {
                renamed.push(new);
                pruning.removed.push(old);
            }
            Err(error) => pruning.untouched.push(UntouchedFolder::unremovable(old, &error)),
        }
    }
    // Before contents are removed: after a power loss, no backup without its contents appears again.
    File::open(backups)
        .and_then(|folder| folder.sync_all())
        .context("cannot make the removal of backups durable")?;
    if renamed.is_empty() && !has_remains {
        return Ok(());
    }
    for folder in renamed {
        if let Err(error) = fs::remove_dir_all(&folder) {
            pruning.untouched.push(UntouchedFolder::unremovable(folder, &error));
        }
    }
    let remaining = match remaining_in(backups) {
        Ok(remaining) => remaining,
        Err(error) => {
            pruning.contents_left = Some(error.text());
            return Ok(());
        }
    };
    if !remaining.iter().any(|backup| backup == made) {
        pruning.contents_left = Some(format!("`{}` is not found", made.display()));
        return Ok(());
    }
    for backup in &remaining {
        if let Err(error) = BackupManifest::read(backup) {
            pruning.contents_left = Some(error.text());
            return Ok(());
        }
    }
    match sweep(contents, &remaining)? {
        Swept::Removed(removed) => pruning.contents_removed = removed,
        Swept::Unreadable(reason) => pruning.contents_left = Some(reason),
    }
    Ok(())
}

enum Swept {
    /// Number of removed contents.
    Removed(u64),
    /// A backup cannot be read: nothing was removed.
    Unreadable(String),
}

/// Removes the contents that none of the backups needs. Their addresses are sorted, in the backups and in the folder of
/// contents, and are compared in parts.
fn sweep(contents: &Contents, backups: &[PathBuf]) -> Result<Swept> {
    let mut garbage = Vec::new();
    let mut first = 0;
    loop {
        let mut part = Vec::new();
        let begin = first;
        let next = loop {
            contents.visit(first, &mut |id| {
                part.push(id);
                ControlFlow::Continue(())
            })?;
            match first.checked_add(1) {
                Some(next) if part.len() < BATCH => first = next,
                next => break next,
            }
        };
        for backup in backups {
            if let Err(error) = retain_unneeded(&mut part, begin, backup) {
                return Ok(Swept::Unreadable(error.text()));
            }
        }
        garbage.append(&mut part);
        let Some(next) = next else { break };
        first = next;
    }
    let mut removed = 0;
    for id in &garbage {
        removed += u64::from(contents.remove(id)?);
    }
    contents.sync()?;
    contents.compact()?;
    Ok(Swept::Removed(removed))
}

/// Takes the contents that a backup needs out of a part of all contents, which is sorted; the first bytes of its addresses
/// are at least `begin`.
fn retain_unneeded(part: &mut Vec<ContentId>, begin: u8, backup: &Path) -> Result<()> {
    let database = backup.join(DATABASE);
    let mut needed = NeededContents::open(&database)?.starting_at(begin);
    let mut next = needed.next().transpose()?;
    let mut failure = None;
    part.retain(|id| {
        while let Some((other, _)) = &next
            && other < id
            && failure.is_none()
        {
            match needed.next().transpose() {
                Ok(following) => next = following,
                Err(error) => failure = Some(error),
            }
        }
        next.as_ref().is_none_or(|(other, _)| other != id)
    });
    failure.map_or(Ok(()), |error| Err(Error::from(error)))
}
