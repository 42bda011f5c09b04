//! Removing what a crash left, and what is replaced.

use super::making::MAKING;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Removes what an earlier run did not complete: entries in the making, and those that are not whole. `is_own` is asked with
/// the name that an entry has when it is complete; others belong to other programs, and remain.
///
/// # Errors
/// The folder cannot be read, or something in it not be judged or removed.
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

/// Removes files and folders of what is replaced or was not completed: first what makes readers find the others. What
/// remains is removed at the next start.
pub(crate) fn discard(paths: impl IntoIterator<Item = PathBuf>) {
    for path in paths {
        if let Err(error) = remove(&path) {
            tracing::warn!("cannot remove `{}`: {error}", path.display());
        }
    }
}

/// Removes a file or a folder, if it is there.
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
