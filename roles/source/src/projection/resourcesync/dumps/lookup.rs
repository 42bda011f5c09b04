//! Files of packages by name: on the disk, or shared by several nodes.

use super::dump_folder::current;
use super::keeper::{SetDumps, lock};
use super::manifest;
use super::record::Package;
use crate::made::shared::SharedFile;
use crate::publish::files::{FileContent, FileError};
use std::fs::File;
use std::io;
use std::path::PathBuf;

impl SetDumps {
    /// Path of a package (`NAME.zip`) or of its manifest (`NAME.xml`). A shared file is fetched if
    /// a local copy is missing; `None` also if the fetch fails.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        match &self.groups {
            None => self.known_file(name).map(|(path, _)| path),
            Some(groups) => {
                let held = groups.group(name).hold(&self.shared_file(name)?).ok()?;
                Some(held.path().to_owned())
            }
        }
    }

    /// Newest known description of a package, by its file name without `.zip`. Shared records are read
    /// again if the package is unknown.
    pub(crate) fn described(&self, stem: &str) -> Result<Option<Package>, FileError> {
        let find = || {
            let dumps = self.resources();
            let mut packages = dumps.iter().flat_map(|dump| &dump.packages);
            packages.find(|known| known.stem == stem).cloned()
        };
        match (find(), &self.groups) {
            (None, Some(groups)) if groups.resources.read_again()? => Ok(find()),
            (found, _) => Ok(found),
        }
    }

    /// The shared file with this name, if the record that was read last lists the file.
    pub(super) fn shared_file(&self, name: &str) -> Option<SharedFile> {
        let folders = [&self.resources, &self.changes, &self.since];
        folders.into_iter().find_map(|folder| current(folder).shared_file(name))
    }

    /// Opens a package or its undamaged manifest; `None` if the file does not exist.
    pub(super) fn open(&self, name: &str) -> Result<Option<FileContent>, FileError> {
        if let Some(groups) = &self.groups {
            return groups.open_file(name, || self.shared_file(name));
        }
        let path = self.whole_file(name).map_err(|cause| FileError::Failed {
            detail: "the manifest of the package is damaged".to_owned(),
            cause: cause.into(),
        })?;
        Ok(path.and_then(|path| File::open(path).ok()).map(FileContent::File))
    }

    fn known_file(&self, name: &str) -> Option<(PathBuf, Option<[u8; 32]>)> {
        [&self.resources, &self.changes, &self.since]
            .into_iter()
            .find_map(|dump_folder| lock(dump_folder).known_file(name))
    }

    /// Path of a package or of its undamaged manifest; a damaged manifest is restored from the
    /// package.
    fn whole_file(&self, name: &str) -> io::Result<Option<PathBuf>> {
        let Some((path, Some(digest))) = self.known_file(name) else { return Ok(self.file(name)) };
        if path.extension().is_some_and(|ending| ending == "xml")
            && !lock(&self.whole).contains(&path)
        {
            if !manifest::is_whole(&path, &digest)? {
                tracing::warn!("the manifest `{name}` is damaged, and is taken from its package");
                manifest::restore(&path, &digest)?;
            }
            let mut whole = lock(&self.whole);
            // Remove the paths of deleted dumps.
            whole.retain(|path| path.exists());
            whole.insert(path.clone());
        }
        Ok(Some(path))
    }
}
