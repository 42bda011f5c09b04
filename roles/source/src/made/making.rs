//! Unfinished files: published in one step when all are durable, or removed.
//!
//! A file is written under a name that starts with [`MAKING`], and is renamed when its bytes are durable. The last rename
//! publishes all files: the rename of the record that lists the files, of the folder that contains the files, or of the only
//! file. After a crash, [`super::sweep`] removes unpublished files at the next start.

use super::file::MadeFile;
use super::sweep::{MAKING, discard};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Unfinished files in one folder. Dropping removes all files, unless [`Self::publish`] was successful.
pub(crate) struct Making {
    folder: PathBuf,
    unfinished: Vec<PathBuf>,
    complete: Vec<PathBuf>,
}

impl Making {
    pub(crate) fn begin(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), unfinished: Vec::new(), complete: Vec::new() }
    }

    /// Path of an unfinished file or folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{MAKING}{name}"))
    }

    /// Creates a file for about `bytes` bytes.
    ///
    /// # Errors
    /// The file cannot be created, or another attempt is writing the file ([`io::ErrorKind::AlreadyExists`]).
    pub(crate) fn file(&mut self, name: &str, bytes: u64) -> io::Result<BufWriter<MadeFile>> {
        let path = self.path(name);
        self.own(&path, MadeFile::create(&path, bytes)).map(BufWriter::new)
    }

    /// Notes a path for removal, unless the path belongs to another attempt.
    fn own<T>(&mut self, path: &Path, made: io::Result<T>) -> io::Result<T> {
        if !matches!(&made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            self.unfinished.push(path.to_owned());
        }
        made
    }

    /// Creates a folder; the caller writes the files in the folder.
    ///
    /// # Errors
    /// The folder cannot be created, or another attempt is writing the folder ([`io::ErrorKind::AlreadyExists`]).
    pub(crate) fn folder(&mut self, name: &str) -> io::Result<PathBuf> {
        let path = self.path(name);
        #[cfg(test)]
        super::steps::at(&path)?;
        self.own(&path, fs::create_dir(&path)).map(|()| path)
    }

    /// Writes a small file and makes the file durable; [`Self::give_name`] or [`Self::publish`] renames the file.
    pub(crate) fn write(&mut self, name: &str, text: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        self.own(&path, MadeFile::write_whole(&path, text))
    }

    /// Makes a file durable, and renames the file.
    pub(crate) fn complete(&mut self, name: &str, file: BufWriter<MadeFile>) -> io::Result<()> {
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync()?;
        self.give_name(name)
    }

    /// Renames a durable file.
    pub(crate) fn give_name(&mut self, name: &str) -> io::Result<()> {
        let (from, to) = (self.path(name), self.folder.join(name));
        rename(&from, &to)?;
        self.unfinished.retain(|path| *path != from);
        self.complete.push(to);
        Ok(())
    }

    /// Retains the complete files, which a record elsewhere publishes. Other files are removed.
    pub(crate) fn retain(mut self) {
        self.complete.clear();
    }

    /// Renames a durable file or folder, which publishes all files. Other unfinished files are removed.
    pub(crate) fn publish(mut self, name: &str) -> io::Result<()> {
        if !self.complete.is_empty() {
            sync_folder(&self.folder)?;
        }
        let from = self.path(name);
        rename(&from, &self.folder.join(name))?;
        self.unfinished.retain(|path| *path != from);
        self.complete.clear();
        // Readers find the files already.
        if let Err(error) = sync_folder(&self.folder) {
            tracing::warn!(
                "a loss of power may take `{name}` in `{}`: {error}",
                self.folder.display()
            );
        }
        Ok(())
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        discard(self.complete.drain(..).rev().chain(self.unfinished.drain(..)));
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(test)]
    super::steps::at(to)?;
    fs::rename(from, to)
}

/// Makes names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(test)]
    super::steps::at(folder)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_not_published_is_removed() {
        let place = tempfile::tempdir().unwrap();
        for ends in [false, true] {
            let mut making = Making::begin(place.path());
            let mut file = making.file("a", 0).unwrap();
            file.write_all(b"a").unwrap();
            making.complete("a", file).unwrap();
            drop(making.file("b", 0).unwrap());
            fs::write(making.folder("c").unwrap().join("d"), "d").unwrap();
            assert_eq!(
                making.folder("c").unwrap_err().kind(),
                io::ErrorKind::AlreadyExists,
                "another run makes it"
            );
            making.write("record", b"a").unwrap();
            assert_eq!(names(place.path()), ["a", "making-b", "making-c", "making-record"]);
            if ends {
                making.publish("record").unwrap();
                assert_eq!(names(place.path()), ["a", "record"]);
            } else {
                drop(making);
                assert_eq!(names(place.path()), [""; 0]);
            }
        }
    }

    #[test]
    fn files_of_another_attempt_remain() {
        let place = tempfile::tempdir().unwrap();
        let mut one = Making::begin(place.path());
        one.folder("a").unwrap();
        one.file("b", 0).unwrap();
        let mut two = Making::begin(place.path());
        assert!(
            two.folder("a").is_err() && two.file("b", 0).is_err() && two.write("b", b"").is_err()
        );
        drop(two);
        assert_eq!(names(place.path()), ["making-a", "making-b"]);
    }
}
