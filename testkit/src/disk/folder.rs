//! Folders: what is in them, copies, comparisons.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A temporary folder in memory where there is one: for folders that are made, synced and thrown
/// away a thousand times.
pub fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The path of everything below a folder, folders and hidden names too, but for what vanishes meanwhile.
pub fn paths(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries = match fs::read_dir(&next) {
            Err(error) if next != folder && error.kind() == ErrorKind::NotFound => continue,
            entries => entries.unwrap(),
        };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    found
}

/// Every visible file with its bytes, by its path in the folder. Symbolic links, hidden names and
/// names that end with `~` are left out, and so is what vanishes meanwhile.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || name.ends_with('~') {
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(bytes) = fs::read(entry.path())
            {
                found.insert(entry.path().strip_prefix(folder).unwrap().to_owned(), bytes);
            }
        }
    }
    found
}

/// Copies everything below a folder, hidden names too; no symbolic links.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in paths(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        let kind = fs::symlink_metadata(&path).unwrap();
        if kind.is_dir() {
            fs::create_dir_all(target).unwrap();
        } else if kind.is_file() {
            fs::copy(path, target).unwrap();
        }
    }
}

/// Copies the visible files of a folder over those of another.
pub fn copy_files(from: &Path, to: &Path) {
    for (path, bytes) in files(from) {
        let target = to.join(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, bytes).unwrap();
    }
}

/// Whether two maps are the same.
///
/// # Errors
/// The first differences.
pub fn same<K: Ord + Debug, V: PartialEq>(
    original: &BTreeMap<K, V>,
    copy: &BTreeMap<K, V>,
) -> Result<(), String> {
    let missing: Vec<_> = original.keys().filter(|key| !copy.contains_key(*key)).take(5).collect();
    let extra: Vec<_> = copy.keys().filter(|key| !original.contains_key(*key)).take(5).collect();
    let differ: Vec<_> = original
        .iter()
        .filter(|(key, value)| copy.get(*key).is_some_and(|other| other != *value))
        .map(|(key, _)| key)
        .take(5)
        .collect();
    if missing.is_empty() && extra.is_empty() && differ.is_empty() {
        return Ok(());
    }
    Err(format!("missing {missing:?}, extra {extra:?}, differ {differ:?}"))
}

/// Checks that two folders hold the same visible files.
pub fn assert_equal(original: &Path, copy: &Path) {
    if let Err(differences) = same(&files(original), &files(copy)) {
        panic!("{differences}");
    }
}
