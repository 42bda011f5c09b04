//! Files and folders that a first run makes before it keeps a resource, and their removal when the
//! run fails.
//!
//! A mistyped address or a Source that is away leaves no trace: only what the run itself made is
//! removed, and folders only while they are empty.

use crate::copy::names::{DATABASE, JOURNAL, LOCK, MARKER};
use abreast_folder::{CopyOf, Dir, Kind};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Folders that did not exist before, innermost first.
#[derive(Debug, Default)]
pub struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    /// Makes a folder and those above it that are missing.
    ///
    /// # Errors
    /// The system's own.
    pub fn make(path: &Path) -> std::io::Result<Self> {
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let new = path.ancestors().take_while(missing).map(Path::to_owned).collect();
        std::fs::create_dir_all(path)?;
        Ok(Self(new))
    }

    /// Removes them, as far as they are empty.
    pub fn remove(&self) {
        for folder in &self.0 {
            // Refused while it has anything in it.
            let _ = std::fs::remove_dir(folder);
        }
    }

    fn extend(&mut self, outer: Self) {
        self.0.extend(outer.0);
    }
}

/// Files and folders that a first run made so far. Removed when this is dropped, unless they are
/// kept.
#[derive(Debug, Default)]
pub(crate) struct Provisional {
    folders: NewFolders,
    /// The copy's folder, when the state folder in it is new.
    marker_in: Option<(Dir, &'static str)>,
    /// The folder of the state, when the database in it is new, and the folders that were in it
    /// before.
    state: Option<(Dir, HashSet<Vec<u8>>)>,
    /// Folders for contents that a packed copy makes first, those that were missing.
    contents: Vec<(Dir, &'static str)>,
    is_kept: bool,
}

impl Provisional {
    /// Notes folders that were made; those made later are inside those made before, or elsewhere.
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

    /// Notes a folder that is about to be made in the copy's.
    pub(crate) fn note_contents(&mut self, root: Dir, name: &'static str) {
        if root.stat(name.as_bytes()).is_err() {
            self.contents.push((root, name));
        }
    }

    /// The run has something to keep, unless it is a dry one.
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

/// The names of the folders in a folder.
fn folders_in(dir: &Dir) -> impl Iterator<Item = Vec<u8>> {
    let folders = dir.entries().into_iter().flatten().flatten();
    folders.filter(|entry| entry.kind == Kind::Folder).map(|entry| entry.name)
}

/// Removes new folders that are empty: those for parts of files and packages are made early.
fn remove_empty_folders(dir: &Dir, before: &HashSet<Vec<u8>>) {
    for name in folders_in(dir).filter(|name| !before.contains(name)) {
        let _ = dir.rmdir(&name);
    }
}
