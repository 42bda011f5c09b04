//! The state folder of a copy, accessed through its handle.
//!
//! Every program that may write into a copy may create links in the folder. As for resources,
//! nothing in the state folder is opened through a symbolic link. A file with a second name (a hard
//! link) is never modified, since the second name may be outside of the copy.

use crate::copy::path_map::STATE_FOLDER;
use crate::report::error::{Error, ExitCode};
use abreast_folder::{Dir, ErrorKind, Folder, Stat, corrected, sealed, unsealed};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes of a digest at the end of a record, at most.
const SEAL_BYTES: u64 = 128;
/// Bytes of a record that is corrected by trying each bit.
const CORRECTED_MAX: usize = 4 << 10;

/// The handle of the folder, and its path for messages.
#[derive(Clone, Debug)]
pub(crate) struct StateFolder {
    /// `None` in a dry run without an existing state, which stores nothing.
    dir: Option<Dir>,
    path: PathBuf,
}

impl StateFolder {
    /// The state folder in the copy's folder, created if missing.
    pub(crate) fn in_copy(folder: &Folder) -> Result<Self, Error> {
        let dir = make_folder(&folder.root(), STATE_FOLDER.as_bytes()).map_err(|error| {
            let error = unusable_folder(error, &folder.path().join(STATE_FOLDER));
            if error.code() != "path.denied" {
                return error;
            }
            error.with_help(format!("run as the owner of {}", folder.path().display()))
        })?;
        Ok(Self { path: path_of(&dir, folder.path().join(STATE_FOLDER)), dir: Some(dir) })
    }

    /// The state folder at a path from the options, which may contain links.
    pub(crate) fn at(path: &Path) -> Result<Self, Error> {
        let dir = Folder::open(path).map_err(|error| unusable_folder(error, path))?.root();
        Ok(Self { path: path_of(&dir, path.to_owned()), dir: Some(dir) })
    }

    /// A state folder that does not exist.
    pub(crate) const fn nowhere(path: PathBuf) -> Self {
        Self { dir: None, path }
    }

    /// The path of the folder, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder in the state folder, and creates the folder if missing.
    pub(crate) fn folder(&self, name: &str) -> Result<Dir, Error> {
        let dir = self.dir.as_ref().ok_or_else(|| {
            let message = format!("there is no state in {}", self.path.display());
            Error::new("io", ExitCode::Io, message)
        })?;
        make_folder(dir, name.as_bytes())
            .map_err(|error| unusable_folder(error, &self.path.join(name)))
    }

    /// Opens a folder in the state folder, if the folder exists.
    pub(crate) fn existing_folder(&self, name: &str) -> Option<Dir> {
        self.dir.as_ref()?.dir(name.as_bytes()).ok()
    }

    /// Removes a folder in the state folder, with its files.
    pub(crate) fn remove_folder(&self, name: &str) {
        let (Some(dir), Some(folder)) = (&self.dir, self.existing_folder(name)) else { return };
        for entry in folder.entries().into_iter().flatten().flatten() {
            let _ = folder.unlink(&entry.name);
        }
        let _ = dir.rmdir(name.as_bytes());
    }

    fn unusable(&self, cause: io::Error) -> Error {
        crate::copy::unusable::unusable(&self.path, cause)
    }

    /// Replaces a small record in one step: after a power failure, the old or the new record is
    /// complete.
    pub(crate) fn replace_text(&self, name: &str, text: &str) -> Result<(), Error> {
        self.replace_bytes(name, &sealed(text.into()))
    }

    /// Replaces a file as [`Self::replace_text`] does, but without a digest at its end.
    pub(crate) fn replace_bytes(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let Some(dir) = &self.dir else { return Ok(()) };
        replace(dir, name, bytes).map_err(|cause| self.unusable(cause))
    }

    /// Removes a file in the state folder, if the file exists.
    pub(crate) fn remove_file(&self, name: &str) {
        let _ = self.dir.as_ref().map(|dir| dir.unlink(name.as_bytes()));
    }

    /// Opens a file in the state folder for reading; `None` if the file is missing.
    pub(crate) fn open_file(&self, name: &str) -> Option<io::Result<File>> {
        match self.dir.as_ref()?.open_read(name.as_bytes()) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened.map(|(file, _)| file).map_err(io::Error::from)),
        }
    }

    /// Reads a small record; `None` if the record is missing.
    ///
    /// # Errors
    /// The record is damaged.
    pub(crate) fn read_text(&self, name: &str, most: u64) -> io::Result<Option<String>> {
        self.dir.as_ref().map_or(Ok(None), |dir| read_record(dir, name.as_bytes(), most))
    }
}

/// Opens a folder, and creates the folder if missing.
pub(crate) fn make_folder(dir: &Dir, name: &[u8]) -> Result<Dir, abreast_folder::Error> {
    match dir.create_dir(name) {
        Err(error) if error.kind() != ErrorKind::Exists => return Err(error),
        _ => {}
    }
    dir.dir(name)
}

/// The error for a state folder, or a folder in it, that cannot be used: for lack of permission,
/// because of the disk, or because the name belongs to something else.
fn unusable_folder(error: abreast_folder::Error, path: &Path) -> Error {
    if matches!(error.kind(), ErrorKind::Denied | ErrorKind::Full) {
        return crate::copy::unusable::unusable(path, error.into());
    }
    let code = crate::report::failure::code_of(&error);
    Error::new(code, ExitCode::Io, format!("{error} ({})", path.display())).with_help(format!(
        "`{STATE_FOLDER}` in the copy, and the folders in it, must be folders of their own"
    ))
}

/// The real path of a folder, for SQLite and WARC files, which are opened by path.
fn path_of(dir: &Dir, shown: PathBuf) -> PathBuf {
    dir.path().or_else(|| shown.canonicalize().ok()).unwrap_or(shown)
}

/// Reads the text of a small record of at most `most` bytes. A damaged record counts as missing.
pub(crate) fn read_text(dir: &Dir, name: &[u8], most: u64) -> Option<String> {
    read_record(dir, name, most).ok().flatten()
}

/// Reads the text of a small record of at most `most` bytes, and corrects an error of a single bit.
fn read_record(dir: &Dir, name: &[u8], most: u64) -> io::Result<Option<String>> {
    let Ok((file, _)) = dir.open_read(name) else { return Ok(None) };
    let mut record = Vec::new();
    if file.take(most + SEAL_BYTES).read_to_end(&mut record).is_err() {
        return Ok(None);
    }
    let corrected = match unsealed(&record) {
        Err(_) if record.len() <= CORRECTED_MAX => corrected(&record),
        _ => None,
    };
    let text = unsealed(corrected.as_ref().unwrap_or(&record))?;
    Ok(std::str::from_utf8(text).ok().map(str::to_owned))
}

/// Replaces a small file in one step: after a power failure, the old or the new file is complete.
pub(crate) fn replace(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = format!("{name}.new");
    write(dir, new.as_bytes(), bytes)?.sync_all()?;
    Ok(dir.rename(new.as_bytes(), dir, name.as_bytes())?)
}

/// Writes a small record, and replaces an existing record of this name.
pub(crate) fn write_text(dir: &Dir, name: &[u8], text: &str) -> io::Result<()> {
    write(dir, name, &sealed(text.into())).map(drop)
}

fn write(dir: &Dir, name: &[u8], bytes: &[u8]) -> io::Result<File> {
    match dir.unlink(name) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut file = dir.create_new(name)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// Opens an incomplete file to continue it; `None` if the file is missing, or has a second name.
pub(crate) fn open_begun(dir: &Dir, name: &[u8]) -> Option<(File, Stat)> {
    dir.open_append(name).ok().filter(|(_, stat)| stat.links == 1)
}

/// Opens a file by path for writing, unless it is a symbolic link or has a second name.
pub(crate) fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(path)?;
    if file.metadata()?.nlink() > 1 {
        return Err(io::Error::other(
            "it has another name (a hard link); remove it, or copy it to a file of its own",
        ));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_with_one_name_is_written_into() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let open = |name: &str| open_own(File::options().append(true).create(true), &path(name));
        open("own").unwrap().write_all(b"mine").unwrap();
        std::fs::write(path("other"), "theirs").unwrap();
        std::fs::hard_link(path("other"), path("hard")).unwrap();
        std::os::unix::fs::symlink(path("other"), path("soft")).unwrap();
        assert!(open("hard").is_err() && open("soft").is_err() && open("own").is_ok());
        let state = StateFolder::at(place.path()).unwrap();
        for name in ["hard", "soft"] {
            state.replace_text(name, "ours").unwrap();
            assert_eq!(state.read_text(name, 9).unwrap().as_deref(), Some("ours\n"));
        }
        assert_eq!(std::fs::read_to_string(path("other")).unwrap(), "theirs");
        assert!(state.folder("own").is_err(), "a file stands there");
    }

    #[test]
    fn a_damaged_record_is_corrected_or_known_to_be_damaged() {
        let place = tempfile::tempdir().unwrap();
        let (state, path) = (StateFolder::at(place.path()).unwrap(), place.path().join("record"));
        state.replace_text("record", "one\ntwo").unwrap();
        let record = std::fs::read(&path).unwrap();
        let read = || state.read_text("record", 9);
        for bit in 0..record.len() * 8 {
            let mut damaged = record.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &damaged).unwrap();
            assert_eq!(read().unwrap().as_deref(), Some("one\ntwo\n"), "bit {bit}");
        }
        let damaged = [b"zzz", &record[3..]].concat();
        std::fs::write(&path, &damaged).unwrap();
        assert_eq!(read().unwrap_err().kind(), io::ErrorKind::InvalidData);
        std::fs::write(&path, "earlier").unwrap();
        assert_eq!(read().unwrap().as_deref(), Some("earlier"));
    }

    #[test]
    fn a_state_folder_that_is_not_there_keeps_nothing() {
        let state = StateFolder::nowhere("missing".into());
        assert!(state.folder("partial").is_err() && state.existing_folder("partial").is_none());
        assert_eq!(state.read_text("owner", 9).unwrap(), None);
        state.replace_text("owner", "x").unwrap();
    }
}
