//! The backups in a folder, from their manifests.

use crate::backup::manifest::{BackedUpSet, BackupManifest, as_text, backups_in};
use crate::place::{Context as _, Error, Result, there};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A backup in a folder of backups.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "backup")]
pub struct ListedBackup {
    /// The folder of the backup.
    #[serde(serialize_with = "as_text")]
    pub backup: PathBuf,
    /// Time at which it was begun; `None` if its manifest cannot be read.
    pub created: Option<String>,
    /// The number of the backup in the folder: the newest backup has the highest; 0 if an earlier version made it.
    pub number: u64,
    /// The sets of the store.
    pub sets: Vec<BackedUpSet>,
    /// Bytes of the files in its folder, without the contents that all backups in the folder share.
    pub bytes: u64,
    /// Why the manifest cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Lists the backups in a folder from their manifests, the newest last, as `restore` orders them. Their files are not read:
/// `check` verifies them.
///
/// # Errors
/// The folder without a backup, or a folder that cannot be read.
pub fn list_backups(folder: &Path) -> Result<Vec<ListedBackup>> {
    let shown = folder.display();
    let reading = || format!("cannot read `{shown}`");
    let is_dir = there::is_dir(folder)?;
    let found = if is_dir { backups_in(folder).with_context(reading)? } else { Vec::new() };
    if found.is_empty() {
        return Err(Error::Usage(format!(
            "there is no complete backup in `{shown}`\n  help: name the folder that `abreast backup` writes to"
        )));
    }
    let mut listed: Vec<ListedBackup> = found.into_iter().map(listed_backup).collect();
    listed.sort_by(|one, other| {
        (one.number, &one.created, &one.backup).cmp(&(other.number, &other.created, &other.backup))
    });
    Ok(listed)
}

fn listed_backup(backup: PathBuf) -> ListedBackup {
    match BackupManifest::read(&backup) {
        Ok(manifest) => ListedBackup {
            backup,
            created: Some(manifest.created),
            number: manifest.number,
            sets: manifest.sets,
            bytes: manifest.files.iter().map(|file| file.length).sum(),
            error: None,
        },
        Err(error) => ListedBackup {
            backup,
            created: None,
            number: 0,
            sets: Vec::new(),
            bytes: 0,
            error: Some(error.text()),
        },
    }
}
