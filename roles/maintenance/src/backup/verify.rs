//! Checks of a whole backup.

use crate::backup::manifest::BackupManifest;
use crate::place::{Context as _, Error, HUB_DATABASE, Result};
use abreast_contents::{Condition, View, digest};
use abreast_core::{ContentId, Meter};
use abreast_store::NeededContents;
use abreast_store::backup::{check_copy, check_hub_copy};
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Contents that are known to be whole, at most: more are read for each backup that needs them.
const WHOLE_MAX: usize = 2_000_000;

/// The folder of contents that all backups in a folder share.
pub(crate) fn contents_of(backup: &Path) -> PathBuf {
    backup.parent().unwrap_or(Path::new("..")).join("contents")
}

/// Checks a backup completely: its files, its databases and its contents, except the contents in
/// `whole`, which were already checked.
///
/// # Errors
/// The backup is damaged, or cannot be read.
pub(crate) fn check_backup(
    backup: &Path,
    whole: &mut HashSet<ContentId>,
    cancel: &AtomicBool,
    meter: &Meter,
) -> Result<BackupManifest> {
    let backup = std::path::absolute(backup)?;
    let manifest = BackupManifest::read(&backup)?;
    let damaged = {
        let contents = View::open(&contents_of(&backup))?;
        verify(&backup, &contents, &manifest, whole, cancel, meter)?
    };
    if let Some(first) = damaged.first() {
        return Err(damaged_content(first, damaged.len()));
    }
    Ok(manifest)
}

/// Verifies all files, and returns the contents that are damaged or missing.
pub(crate) fn verify(
    backup: &Path,
    contents: &View,
    manifest: &BackupManifest,
    whole: &mut HashSet<ContentId>,
    cancel: &AtomicBool,
    meter: &Meter,
) -> Result<Vec<ContentId>> {
    verify_files(backup, manifest, meter)?;
    check_copy(&backup.join("source.db"))?;
    let mut damaged = Vec::new();
    if meter.is_listening() {
        let (mut total, mut bytes) = (0, 0);
        for needed in NeededContents::open(&backup.join("source.db"))? {
            (total, bytes) = (total + 1, bytes + needed?.1);
        }
        let files = manifest.files.iter();
        let (total, bytes) =
            (total + files.len() as u64, files.map(|file| file.length).sum::<u64>() + bytes);
        meter.expect(total, bytes);
    }
    for needed in NeededContents::open(&backup.join("source.db"))? {
        let (id, length) = needed?;
        if cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if whole.contains(&id) {
            continue;
        }
        meter.add(1, length);
        let _named = meter.item(|| id.to_string());
        if !matches!(contents.examine(&id)?, Condition::Whole | Condition::RecordDamaged) {
            damaged.push(id);
            continue;
        }
        if whole.len() < WHOLE_MAX {
            whole.insert(id);
        }
    }
    if backup.join(HUB_DATABASE).is_file() {
        check_hub_copy(&backup.join(HUB_DATABASE))?;
    }
    damaged.sort_unstable();
    Ok(damaged)
}

/// Compares each file of a backup with its digest in the manifest.
pub(crate) fn verify_files(backup: &Path, manifest: &BackupManifest, meter: &Meter) -> Result<()> {
    meter.begin("verifying");
    for file in &manifest.files {
        let _named = meter.item(|| file.path.clone());
        meter.add(1, file.length);
        let path = Path::new(&file.path);
        if !path.components().all(|component| matches!(component, Component::Normal(_))) {
            return Err(Error::Damaged(format!(
                "the manifest names `{}`, which is outside of the backup",
                file.path
            )));
        }
        let path = backup.join(path);
        let (id, length) =
            digest(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        if length != file.length || id.to_string() != file.blake3 {
            return Err(Error::Damaged(format!(
                "`{}` is not as it was backed up\n  help: use an earlier backup",
                path.display()
            )));
        }
    }
    Ok(())
}

/// The error for a backup with damaged or missing contents.
pub(crate) fn damaged_content(first: &ContentId, all: usize) -> Error {
    let more = if all > 1 { format!(", and {} more", all - 1) } else { String::new() };
    Error::Damaged(format!(
        "the kept content {first} is missing or damaged in the backup{more}\n  help: while the store is there, `abreast backup \
         --read-data` replaces it; `abreast restore --without-damaged` leaves it out"
    ))
}
