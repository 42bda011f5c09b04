//! The manifests of backups: the contents of a backup, its store, and the newest backup in a folder.

use crate::place::{Context as _, Error, Result};
use abreast_contents::address_of;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Since small contents are packed. Backups of format 1 are restored as well.
pub(crate) const FORMAT: u32 = 2;
pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const DATABASE: &str = "source.db";
pub(crate) const MAKING: &str = "making-";

/// Contents of a backup.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct BackupManifest {
    /// Version of the backup format: [`FORMAT`]; version 1 stored each content in a separate file.
    pub(crate) format: u32,
    pub(crate) created: String,
    /// Increases with each backup in a folder, so that the order does not depend on the clock; 0 in
    /// backups from earlier versions of the program.
    #[serde(default)]
    pub(crate) number: u64,
    pub(crate) program: String,
    pub(crate) sets: Vec<BackedUpSet>,
    pub(crate) files: Vec<BackedUpFile>,
    /// Digest of the rest; earlier versions wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blake3: Option<String>,
}

/// A set in a backup.
#[derive(Debug, Deserialize, Serialize)]
pub struct BackedUpSet {
    /// Name of the set in URLs.
    pub name: String,
    /// Creation time of the set's log, in microseconds; identifies the store. Missing in backups from
    /// earlier versions of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_created: Option<i64>,
    /// Position of the last change of the set.
    pub position: u64,
    /// Number of resources of the set.
    pub resources: u64,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct BackedUpFile {
    /// Within the backup, components parted by `/`.
    pub(crate) path: String,
    pub(crate) length: u64,
    pub(crate) blake3: String,
}

impl BackupManifest {
    /// Reads the manifest of a backup.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or a newer program wrote it.
    pub(crate) fn read(backup: &Path) -> Result<Self> {
        let shown = backup.display();
        let text = fs::read(backup.join(MANIFEST))
            .with_context(|| format!("cannot read the manifest of `{shown}`"))?;
        let damaged = |why: &dyn std::fmt::Display| {
            Error::Damaged(format!("the manifest of `{shown}` is damaged: {why}"))
        };
        let mut manifest: Self = serde_json::from_slice(&text).map_err(|error| damaged(&error))?;
        if !(1..=FORMAT).contains(&manifest.format) {
            return Err(Error::Damaged(format!(
                "the backup has format {}, this program reads 1 to {FORMAT}\n  help: use the newer program",
                manifest.format
            )));
        }
        let stated = manifest.blake3.take();
        if stated.is_some_and(|stated| manifest.digest().ok().as_ref() != Some(&stated)) {
            return Err(damaged(&"its digest is another one"));
        }
        Ok(manifest)
    }

    /// Sets the digest of the manifest, and returns the text to write.
    pub(crate) fn seal(&mut self) -> io::Result<Vec<u8>> {
        self.blake3 = None;
        self.blake3 = Some(self.digest()?);
        Ok(serde_json::to_vec_pretty(self)?)
    }

    fn digest(&self) -> serde_json::Result<String> {
        Ok(address_of(&serde_json::to_vec(self)?).to_string())
    }

    /// Whether the backup may be from the store with these sets: at least one set has the same name and
    /// log. Only the slugs are compared if the manifest is from an earlier version of the program.
    pub(crate) fn is_of(&self, sets: &[BackedUpSet]) -> bool {
        let logs = |sets: &[BackedUpSet]| -> BTreeSet<(String, i64)> {
            let log = |set: &BackedUpSet| Some((set.name.clone(), set.log_created?));
            sets.iter().filter_map(log).collect()
        };
        let (own, others) = (logs(&self.sets), logs(sets));
        if own.is_empty() || others.is_empty() {
            let is_same = |set: &BackedUpSet| sets.iter().any(|other| other.name == set.name);
            return self.sets.is_empty() || sets.is_empty() || self.sets.iter().any(is_same);
        }
        !own.is_disjoint(&others)
    }

    /// Whether a set of the backup certainly has the same log as one of the other backup.
    pub(crate) fn shares_log(&self, other: &Self) -> bool {
        let is_same = |one: &BackedUpSet, other: &BackedUpSet| {
            one.log_created.is_some()
                && (one.log_created, &one.name) == (other.log_created, &other.name)
        };
        self.sets.iter().any(|one| other.sets.iter().any(|other| is_same(one, other)))
    }

    /// Whether the manifest contains the creation times of logs, which identify a store.
    pub(crate) fn has_logs(&self) -> bool {
        self.sets.iter().any(|set| set.log_created.is_some())
    }

    /// The slugs of all sets in the backup, for messages.
    fn names(&self) -> String {
        self.sets.iter().map(|set| set.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a folder is one backup.
pub(crate) fn is_backup(dir: &Path) -> bool {
    let manifest = fs::read(dir.join(MANIFEST)).ok();
    let manifest = manifest.and_then(|text| serde_json::from_slice::<BackupManifest>(&text).ok());
    manifest.is_some_and(|manifest| manifest.files.iter().any(|file| file.path == DATABASE))
}

/// Refuses a folder that is one backup, for a command that needs a store.
///
/// # Errors
/// It is one.
pub fn refuse_backup(dir: &Path) -> Result<()> {
    if is_backup(dir) {
        let name = dir.display();
        let message = format!(
            "`{name}` is a backup, which would be altered\n  help: `abreast restore {name} DIR` makes a store of it; `abreast check {name}` reads it"
        );
        return Err(Error::Usage(message));
    }
    Ok(())
}

/// The complete backups in a folder, by name; the folder itself, if it is one. Other programs have manifests, too.
///
/// # Errors
/// The folder, or one in it that may be a backup, cannot be read.
pub(crate) fn backups_in(path: &Path) -> io::Result<Vec<PathBuf>> {
    if is_candidate(path) {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?.path();
        let is_unfinished =
            entry.file_name().is_some_and(|name| is_unfinished(&name.to_string_lossy()));
        if !is_unfinished && entry.is_dir() && is_candidate(&entry) {
            found.push(entry);
        }
    }
    found.sort();
    Ok(found)
}

/// The complete backups in a folder, before contents that no backup needs are removed. Unlike [`backups_in`], it passes
/// over no folder that cannot be read, except `lost+found`.
///
/// # Errors
/// The folder, or an entry that may be a backup, cannot be read, for example a dangling symbolic link.
pub(crate) fn remaining_in(backups: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let shown = backups.display();
    for entry in fs::read_dir(backups).with_context(|| format!("cannot read `{shown}`"))? {
        let entry = entry.with_context(|| format!("cannot read `{shown}`"))?;
        let (name, path) = (entry.file_name(), entry.path());
        if name == "lost+found" || name == "contents" || is_unfinished(&name.to_string_lossy()) {
            continue;
        }
        if may_need_contents(&path).with_context(|| format!("cannot read `{}`", path.display()))? {
            found.push(path);
        }
    }
    Ok(found)
}

/// Whether an entry is a complete backup; an error if this cannot be found out.
fn may_need_contents(entry: &Path) -> io::Result<bool> {
    if !fs::metadata(entry)?.is_dir() {
        return Ok(false);
    }
    let manifest = entry.join(MANIFEST);
    match fs::symlink_metadata(&manifest) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    fs::read(&manifest)?;
    Ok(entry.join(DATABASE).try_exists()? || is_backup(entry))
}

/// Whether a folder may be a backup. If permission to read it is denied, its name decides: other
/// unreadable folders, such as `lost+found`, are not backups. A check of the backup reports the error.
pub(crate) fn is_candidate(dir: &Path) -> bool {
    match dir.join(MANIFEST).try_exists() {
        Ok(has_manifest) => has_manifest && (dir.join(DATABASE).exists() || is_backup(dir)),
        Err(_) => dir.file_name().is_some_and(|name| is_time(name.as_encoded_bytes())),
    }
}

/// The newest backup in a folder, or the folder itself if it is a backup. All backups in the folder
/// must be from the same store.
///
/// # Errors
/// The folder is without a backup, several stores have backups in the folder, or a manifest cannot be read.
pub(crate) fn newest(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let found = backups_in(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let read = |backup: PathBuf| {
        let manifest = BackupManifest::read(&backup)
            .context("cannot find the newest backup (help: name one backup)")?;
        Ok((manifest, backup))
    };
    let mut all = found.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    all.sort_by(|(one, _), (other, _)| {
        (one.number, &one.created).cmp(&(other.number, &other.created))
    });
    let Some((newest, backup)) = all.pop() else {
        return Err(Error::Usage(format!("there is no complete backup in `{}`", path.display())));
    };
    let mut same = vec![&newest];
    let mut others: Vec<_> = all.iter().collect();
    loop {
        let before = others.len();
        others.retain(|(manifest, _)| {
            let is_same = same.iter().any(|known| manifest.is_of(&known.sets));
            // One of an earlier version shows nothing about others.
            same.extend((is_same && manifest.has_logs()).then_some(manifest));
            !is_same
        });
        if others.len() == before {
            break;
        }
    }
    if let Some((other, place)) = others.last() {
        return Err(Error::Usage(format!(
            "`{}` has backups of several stores: `{}` (sets {}) and `{}` (sets {})\n  help: name one backup",
            path.display(),
            backup.display(),
            newest.names(),
            place.display(),
            other.names()
        )));
    }
    Ok(backup)
}

/// The number of the next backup of a store in a folder.
///
/// # Errors
/// All backups there are of another store, or the folder cannot be read.
pub(crate) fn next_number(backups: &Path, sets: &[BackedUpSet]) -> Result<u64> {
    let found = backups_in(backups)?;
    // A damaged backup does not prevent new backups.
    let all: Vec<BackupManifest> =
        found.iter().filter_map(|one| BackupManifest::read(one).ok()).collect();
    let has_logs = all.iter().any(BackupManifest::has_logs);
    if let Some(other) = all.last()
        && !all.iter().any(|one| one.has_logs() == has_logs && one.is_of(sets))
    {
        return Err(Error::Usage(format!(
            "`{}` has backups of another store (sets {})\n  help: name another folder for the backups of this one",
            backups.display(),
            other.names()
        )));
    }
    Ok(all.iter().map(|one| one.number).max().unwrap_or_default() + 1)
}

/// Whether a folder has the name of an incomplete backup: `making-20260131T120000.000000Z`.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.strip_prefix(MAKING).is_some_and(|time| is_time(time.as_bytes()))
}

/// Whether the name has the form of a time, as in the names of backups. A time without a fraction is a whole second.
pub(crate) fn is_time(name: &[u8]) -> bool {
    let is_like = |(found, byte): (u8, u8)| match byte {
        b'0' => found.is_ascii_digit(),
        byte => found == byte,
    };
    let has_form = |form: &[u8]| {
        name.len() == form.len() && name.iter().copied().zip(form.iter().copied()).all(is_like)
    };
    has_form(b"00000000T000000.000000Z") || has_form(b"00000000T000000Z")
}

/// Writes a path as text, even if it is not UTF-8.
pub(crate) fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}
