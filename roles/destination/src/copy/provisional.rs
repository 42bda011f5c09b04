//! Files and folders that a first run creates before it stores a resource, and their removal if the
//! run fails.
//!
//! A run with a mistyped address, or with a Source that does not answer, leaves no files: only
//! files of the run itself are removed, and folders only while they are empty.

use crate::copy::names::{DATABASE, JOURNAL, LOCK, MARKER};
use abreast_folder::{CopyOf, Dir, Kind};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Folders that did not exist before, innermost first.
#[derive(Debug, Default)]
pub(crate) struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    /// Makes a folder and those above it that are missing.
    ///
    /// # Errors
    /// The system's own.
    pub(crate) fn make(path: &Path) -> std::io::Result<Self> {
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let new = path.ancestors().take_while(missing).map(Path::to_owned).collect();
        std::fs::create_dir_all(path)?;
        Ok(Self(new))
    }

    /// Removes the new folders that are still empty.
    pub(crate) fn remove(&self) {
        for folder in &self.0 {
            // Fails if the folder is not empty.
            let _ = std::fs::remove_dir(folder);
        }
    }

    fn extend(&mut self, outer: Self) {
        self.0.extend(outer.0);
    }
}

/// Files and folders that a first run has created. The destructor removes the files and folders,
/// unless [`Provisional::keep_unless`] was called.
#[derive(Debug, Default)]
pub(crate) struct Provisional {
    folders: NewFolders,
    /// The copy's folder, if this run created the state folder in it.
    marker_in: Option<(Dir, &'static str)>,
    /// The state folder, if this run created the database, and the folders that existed in the
    /// state folder before.
    state: Option<(Dir, HashSet<Vec<u8>>)>,
    /// Folders that this run created for the contents of a packed copy.
    contents: Vec<(Dir, &'static str)>,
    is_kept: bool,
}

impl Provisional {
    /// Adds created folders. Folders that are created later are inside the earlier folders, or
    /// elsewhere.
    pub(crate) fn note_folders(&mut self, mut new: NewFolders) {
        std::mem::swap(&mut self.folders, &mut new);
        self.folders.extend(new);
    }

    pub(crate) fn note_marker(&mut self, root: Dir, name: &'static str) {
        self.marker_in = Some((root, name));
    }

    pub(crate) fn note_state(&mut self, state: Dir) {
        let before = folders_in(&state).collect();
        self.state = Some((state, before));
    }

    /// Records a folder that will be created in the folder of the copy.
    pub(crate) fn note_contents(&mut self, root: Dir, name: &'static str) {
        if root.stat(name.as_bytes()).is_err() {
            self.contents.push((root, name));
        }
    }

    /// Prevents the removal, except in a dry run: the run has stored something.
    pub(crate) fn keep_unless(&mut self, dry_run: bool) {
        self.is_kept = !dry_run;
    }
}

impl Drop for Provisional {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let Some((state, _)) = &self.state {
            for end in ["", "-wal", "-shm"] {
                let _ = state.unlink(format!("{DATABASE}{end}").as_bytes());
            }
            let _ = state.unlink(JOURNAL.as_bytes());
        }
        for (root, name) in &self.contents {
            let _ = root.rmdir(name.as_bytes());
        }
        if let Some((root, name)) = &self.marker_in
            && let Ok(marker) = root.dir(name.as_bytes())
        {
            for file in [LOCK, MARKER.as_bytes(), CopyOf::NAME.as_bytes()] {
                let _ = marker.unlink(file);
            }
            remove_empty_folders(&marker, &HashSet::new());
            let _ = root.rmdir(name.as_bytes());
        }
        if let Some((state, before)) = &self.state {
            remove_empty_folders(state, before);
        }
        self.folders.remove();
    }
}

/// The folders in a folder, by name.
fn folders_in(dir: &Dir) -> impl Iterator<Item = Vec<u8>> {
    let folders = dir.entries().into_iter().flatten().flatten();
    folders.filter(|entry| entry.kind == Kind::Folder).map(|entry| entry.name)
}

/// Removes new empty folders: folders for parts of files and for packages are created early.
fn remove_empty_folders(dir: &Dir, before: &HashSet<Vec<u8>>) {
    for name in folders_in(dir).filter(|name| !before.contains(name)) {
        let _ = dir.rmdir(&name);
    }
}
