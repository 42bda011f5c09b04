//! Folder of a site. Files are complete when they appear; all access is below one handle, and
//! symbolic links are not followed.

use crate::static_site::report::SiteError;
use abreast_folder::{Dir, ErrorKind, Folder, Kind, Locked, Stat};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Hidden folder in the site, and the entries in it.
const HIDDEN: &[u8] = b".abreast";
const OWN: &[u8] = b"site";
const TEMPORARY: &[u8] = b"temporary";
const LOCK: &[u8] = b"lock";
/// Bytes compared at a time.
const CHUNK: usize = 64 * 1024;

/// Whether writing changed a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Changed,
    Same,
}

/// Folder of a site that is being written, with a lock against other builds.
pub(super) struct SiteFolder {
    folder: Folder,
    own: Dir,
    temporary: Dir,
    number: u64,
    _lock: Locked,
}

impl SiteFolder {
    pub(super) fn open(path: &Path) -> Result<Self, SiteError> {
        let folder = Folder::open(path)?;
        let own = dir_in(&dir_in(&folder.root(), HIDDEN)?, OWN)?;
        let Some(lock) = own.lock(LOCK)? else {
            return Err(SiteError::Locked(path.display().to_string()));
        };
        let temporary = dir_in(&own, TEMPORARY)?;
        // Remove temporary files of a killed build.
        for entry in temporary.list()? {
            temporary.unlink(&entry.name)?;
        }
        Ok(Self { folder, own, temporary, number: 0, _lock: lock })
    }

    /// Folder for the records of builds.
    pub(super) fn own(&self) -> &Dir {
        &self.own
    }

    /// Whether a file or folder with this path exists.
    pub(super) fn exists(&self, path: &str) -> Result<bool, SiteError> {
        let (parent, name) = split(path.as_bytes());
        match self.parent(parent).and_then(|dir| dir.stat(name)) {
            Ok(_) => Ok(true),
            // A file or link blocks the path of a folder.
            Err(error) if matches!(error.kind(), ErrorKind::NotFolder | ErrorKind::Symlink) => {
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a file has exactly these bytes.
    pub(super) fn holds(&self, path: &str, bytes: &[u8]) -> Result<bool, SiteError> {
        let Some((mut file, _)) = self.open_file(path.as_bytes(), bytes.len() as u64)? else {
            return Ok(false);
        };
        let mut chunk = vec![0; CHUNK];
        let mut rest = bytes;
        let shown = |error| SiteError::Write(path.to_owned(), error);
        while !rest.is_empty() {
            let length = CHUNK.min(rest.len());
            match file.read_exact(&mut chunk[..length]) {
                Ok(()) if chunk[..length] == rest[..length] => rest = &rest[length..],
                Ok(()) => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                Err(error) => return Err(shown(error)),
            }
        }
        Ok(file.read(&mut chunk[..1]).map_err(shown)? == 0)
    }

    /// Opens the file if it has this length.
    pub(super) fn open_file(
        &self,
        path: &[u8],
        length: u64,
    ) -> Result<Option<(File, Stat)>, SiteError> {
        let (parent, name) = split(path);
        match self.parent(parent).and_then(|dir| dir.open_read(name)) {
            Ok((file, stat)) => Ok((stat.size == length).then_some((file, stat))),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Denied | ErrorKind::Full | ErrorKind::Other
                ) =>
            {
                Err(error.into())
            }
            Err(_) => Ok(None),
        }
    }

    /// Writes a whole file, unless it already has these bytes.
    pub(super) fn write(&mut self, path: &str, bytes: &[u8]) -> Result<Written, SiteError> {
        if self.holds(path, bytes)? {
            return Ok(Written::Same);
        }
        let mut draft = self.draft()?;
        draft.file.write_all(bytes).map_err(|error| SiteError::Write(path.to_owned(), error))?;
        self.place(&draft, path.as_bytes(), 0)?;
        Ok(Written::Changed)
    }

    /// Creates a temporary file without a final path.
    pub(super) fn draft(&mut self) -> Result<Draft, SiteError> {
        self.number += 1;
        let name = self.number.to_string().into_bytes();
        let file = self.temporary.create_new(&name)?;
        Ok(Draft { file, name })
    }

    /// Removes a temporary file that is not needed.
    pub(super) fn discard(&self, draft: &Draft) -> Result<(), SiteError> {
        Ok(self.temporary.unlink(&draft.name)?)
    }

    /// Moves a temporary file to its path. The first `ours` components of the path are folders of
    /// other programs. Anything that blocks the path after them belongs to the site, and is
    /// removed. With 0, folders are created, and nothing is removed.
    pub(super) fn place(
        &mut self,
        draft: &Draft,
        path: &[u8],
        ours: usize,
    ) -> Result<(), SiteError> {
        let (parent, name) = split(path);
        let mut dir = self.folder.root();
        for (depth, component) in components(parent).enumerate() {
            if ours > 0
                && depth >= ours
                && dir.stat(component).is_ok_and(|stat| stat.kind != Kind::Folder)
            {
                dir.unlink(component)?;
            }
            dir = dir_in(&dir, component)?;
        }
        match self.temporary.rename(&draft.name, &dir, name) {
            Err(error) if ours > 0 && error.kind() == ErrorKind::NotFile => {
                remove_tree(&dir.dir(name)?)?;
                dir.rmdir(name)?;
                self.temporary.rename(&draft.name, &dir, name)?;
            }
            result => result?,
        }
        Ok(())
    }

    /// Removes a file and the folders that are empty afterwards. Returns whether the file existed.
    pub(super) fn remove(&self, path: &str) -> Result<bool, SiteError> {
        self.remove_bytes(path.as_bytes(), 0)
    }

    /// Like [`Self::remove`], but the first `keep` components of the path are never removed.
    pub(super) fn remove_bytes(&self, path: &[u8], keep: usize) -> Result<bool, SiteError> {
        let absent = |kind| {
            matches!(
                kind,
                ErrorKind::NotFound
                    | ErrorKind::NotFolder
                    | ErrorKind::Symlink
                    | ErrorKind::NotFile
            )
        };
        let (mut parent, name) = split(path);
        match self.parent(parent).and_then(|dir| dir.unlink(name)) {
            Ok(()) => {}
            Err(error) if absent(error.kind()) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        while components(parent).count() > keep {
            let (outer, name) = split(parent);
            match self.parent(outer).and_then(|dir| dir.rmdir(name)) {
                Ok(()) => parent = outer,
                Err(_) => break,
            }
        }
        Ok(true)
    }

    /// Removes a folder with its content, and the parent folders that are empty afterwards. Returns
    /// the number of removed files.
    pub(super) fn remove_all(&self, top: &str) -> Result<u64, SiteError> {
        let (mut found, mut removed) = (Vec::new(), 0);
        self.visit(top, &mut |path| {
            found.push(path.to_vec());
            Ok(())
        })?;
        for path in found {
            removed += u64::from(self.remove_bytes(&path, 0)?);
        }
        Ok(removed)
    }

    /// Visits every file below a folder, with its path.
    pub(super) fn visit(
        &self,
        top: &str,
        see: &mut dyn FnMut(&[u8]) -> Result<(), SiteError>,
    ) -> Result<(), SiteError> {
        let mut folders = vec![top.trim_end_matches('/').as_bytes().to_vec()];
        while let Some(path) = folders.pop() {
            let dir = match self.parent(&path) {
                Ok(dir) => dir,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            for entry in dir.list()? {
                let inner = [path.as_slice(), entry.name.as_slice()].join(&b'/');
                if entry.kind == Kind::Folder {
                    folders.push(inner);
                } else {
                    see(&inner)?;
                }
            }
        }
        Ok(())
    }

    /// Makes all files of the site durable.
    pub(super) fn sync(&self) -> Result<(), SiteError> {
        Ok(self.own.sync_filesystem()?)
    }

    fn parent(&self, path: &[u8]) -> Result<Dir, abreast_folder::Error> {
        self.folder.dir(components(path))
    }
}

/// Temporary file without a final path; the next build removes an unused one.
pub(super) struct Draft {
    pub(super) file: File,
    name: Vec<u8>,
}

/// Opens a folder by name; creates it if it is missing.
fn dir_in(dir: &Dir, name: &[u8]) -> Result<Dir, SiteError> {
    match dir.dir(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            dir.create_dir(name)?;
            Ok(dir.dir(name)?)
        }
        result => Ok(result?),
    }
}

/// Empties a folder from the deepest level upwards, without recursion.
fn remove_tree(top: &Dir) -> Result<(), SiteError> {
    let mut stack: Vec<(Dir, Option<Vec<u8>>)> = vec![(top.clone(), None)];
    while let Some((dir, _)) = stack.last() {
        let dir = dir.clone();
        let mut inner = None;
        for entry in dir.list()? {
            if entry.kind == Kind::Folder {
                inner = Some(entry.name);
                break;
            }
            dir.unlink(&entry.name)?;
        }
        if let Some(name) = inner {
            stack.push((dir.dir(&name)?, Some(name)));
            continue;
        }
        if let Some((_, Some(name))) = stack.pop()
            && let Some((outer, _)) = stack.last()
        {
            outer.rmdir(&name)?;
        }
    }
    Ok(())
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_is_written_through_a_link_or_over_a_folder() {
        let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), place.path().join("set")).unwrap();
        std::fs::create_dir(place.path().join("sitemap.xml")).unwrap();
        let mut site_folder = SiteFolder::open(place.path()).unwrap();
        assert!(
            site_folder.exists("set/x.xml").unwrap() && site_folder.exists("sitemap.xml").unwrap()
        );
        assert!(site_folder.write("set/x.xml", b"x").is_err());
        assert!(site_folder.write("sitemap.xml", b"x").is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        assert!(matches!(SiteFolder::open(place.path()), Err(SiteError::Locked(_))));
    }

    #[test]
    fn equal_bytes_are_not_written_again() {
        let place = tempfile::tempdir().unwrap();
        let mut site_folder = SiteFolder::open(place.path()).unwrap();
        assert_eq!(site_folder.write("a/b", b"one").unwrap(), Written::Changed);
        assert_eq!(site_folder.write("a/b", b"one").unwrap(), Written::Same);
        assert_eq!(site_folder.write("a/b", b"two").unwrap(), Written::Changed);
        assert_eq!(std::fs::read(place.path().join("a/b")).unwrap(), b"two");
    }

    #[test]
    fn our_own_files_and_folders_give_way_to_each_other() {
        let place = tempfile::tempdir().unwrap();
        let mut site_folder = SiteFolder::open(place.path()).unwrap();
        for (path, content) in [("r/a", "1"), ("r/a/b/c", "2"), ("r/a", "3")] {
            let mut draft = site_folder.draft().unwrap();
            draft.file.write_all(content.as_bytes()).unwrap();
            site_folder.place(&draft, path.as_bytes(), 1).unwrap();
            assert_eq!(std::fs::read_to_string(place.path().join(path)).unwrap(), content);
        }
        assert!(site_folder.remove_bytes(b"r/a", 1).unwrap());
        assert!(!site_folder.remove_bytes(b"r/a", 1).unwrap());
        assert!(place.path().join("r").is_dir());
    }
}
