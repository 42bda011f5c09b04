//! Removal of leftovers of a crash, and of replaced files.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Prefix of the names of unfinished files.
pub(crate) const MAKING: &str = "making-";

/// Removes unfinished and incomplete entries of earlier processes. `is_own` receives the final name of an entry; entries of
/// other programs remain.
///
/// # Errors
/// The folder cannot be read, or an entry cannot be read or removed.
pub(crate) fn sweep(
    folder: &Path,
    is_own: impl Fn(&str) -> bool,
    mut is_whole: impl FnMut(&str) -> io::Result<bool>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let unfinished = name.strip_prefix(MAKING);
        if is_own(unfinished.unwrap_or(name)) && (unfinished.is_some() || !is_whole(name)?) {
            remove(&folder.join(name))?;
        }
    }
    Ok(())
}

/// Folders in a folder, sorted; empty if the folder is missing.
pub(crate) fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    found.retain(|path| path.is_dir());
    found.sort();
    Ok(found)
}

/// Removes replaced or incomplete files and folders in the given order, the record first. A failure is logged; the next
/// start removes the rest.
pub(crate) fn discard(paths: impl IntoIterator<Item = PathBuf>) {
    for path in paths {
        if let Err(error) = remove(&path) {
            tracing::warn!("cannot remove `{}`: {error}", path.display());
        }
    }
}

/// Removes a file or folder, if it exists.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_whole_is_removed_and_nothing_of_others() {
        let place = tempfile::tempdir().unwrap();
        for name in ["own-1", "own-2", "making-own-3", "making-other", "other"] {
            fs::write(place.path().join(name), "bytes").unwrap();
        }
        fs::create_dir(place.path().join("making-own-4")).unwrap();
        fs::write(place.path().join("making-own-4/file"), "bytes").unwrap();
        sweep(place.path(), |name| name.starts_with("own-"), |name| Ok(name == "own-2")).unwrap();
        let mut names: Vec<_> = fs::read_dir(place.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["making-other", "other", "own-2"]);
        let refuse = |_: &str| Err(io::ErrorKind::Other.into());
        assert!(sweep(place.path(), |name| name == "own-2", refuse).is_err());
    }
}
