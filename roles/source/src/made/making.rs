//! Files in the making: published in one step when all of them are durable, else removed.
//!
//! Each is written under a name that begins with [`MAKING`] and gets its own name when it is durable. The last one to get
//! its name is the record that lists the others, or the folder that holds them, or the only file. Before that no reader
//! finds the others; so at any instant what was made is there whole, or not. What a crash leaves is removed by
//! [`super::sweep`] at the next start.

use super::file::MadeFile;
use super::sweep::discard;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Begins the names of files that are not complete.
pub(crate) const MAKING: &str = "making-";

/// Files in the making, in one folder. What is not published is removed when this is dropped.
pub(crate) struct Making {
    folder: PathBuf,
    unfinished: Vec<PathBuf>,
    complete: Vec<PathBuf>,
}

impl Making {
    pub(crate) fn begin(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), unfinished: Vec::new(), complete: Vec::new() }
    }

    /// Where something is until it gets its name.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{MAKING}{name}"))
    }

    /// Begins a file, unless the disk would be full with so many bytes.
    pub(crate) fn file(&mut self, name: &str, bytes: u64) -> io::Result<BufWriter<MadeFile>> {
        let path = self.path(name);
        self.unfinished.push(path.clone());
        Ok(BufWriter::new(MadeFile::create(&path, bytes)?))
    }

    /// Begins a folder; its files are its maker's.
    ///
    /// # Errors
    /// It cannot be made, or another run makes it now ([`io::ErrorKind::AlreadyExists`]).
    pub(crate) fn folder(&mut self, name: &str) -> io::Result<PathBuf> {
        let path = self.path(name);
        #[cfg(test)]
        super::steps::at(&path)?;
        fs::create_dir(&path)?;
        self.unfinished.push(path.clone());
        Ok(path)
    }

    /// Writes a small file, which is durable then, and gets its name by [`Self::give_name`] or [`Self::publish`].
    pub(crate) fn write(&mut self, name: &str, text: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        self.unfinished.push(path.clone());
        MadeFile::write_whole(&path, text)
    }

    /// Makes a file durable and gives it its name.
    pub(crate) fn complete(&mut self, name: &str, file: BufWriter<MadeFile>) -> io::Result<()> {
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync()?;
        self.give_name(name)
    }

    /// Gives a durable file its name.
    pub(crate) fn give_name(&mut self, name: &str) -> io::Result<()> {
        let (from, to) = (self.path(name), self.folder.join(name));
        rename(&from, &to)?;
        self.unfinished.retain(|path| *path != from);
        self.complete.push(to);
        Ok(())
    }

    /// Publishes all of it, by giving this durable file or folder its name. Whatever else is unfinished is removed.
    pub(crate) fn publish(mut self, name: &str) -> io::Result<()> {
        if !self.complete.is_empty() {
            sync_folder(&self.folder)?;
        }
        let from = self.path(name);
        rename(&from, &self.folder.join(name))?;
        self.unfinished.retain(|path| *path != from);
        self.complete.clear();
        // It is there now, for readers and for the next start.
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
    fn another_run_keeps_the_folder_that_it_makes() {
        let place = tempfile::tempdir().unwrap();
        let mut one = Making::begin(place.path());
        one.folder("a").unwrap();
        let mut two = Making::begin(place.path());
        assert!(two.folder("a").is_err());
        drop(two);
        assert_eq!(names(place.path()), ["making-a"]);
    }
}
