//! Places in the folder of a copy: the path of a resource's file, and the file or folder that
//! exists at that path.

use crate::copy::partial::Partials;
use crate::copy::path_map::{Form, PathError, PathMap};
use crate::copy::probe::FileSystem;
use crate::copy::published::BACKUP_MARK;
use crate::copy::state_folder::{StateFolder, make_folder};
use crate::report::failure::Failure;
use abreast_folder::{Dir, Error, ErrorKind, Folder, Kind, Stat};
use abreast_store::mirror::Row;
use abreast_webtypes::visible;
use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A path for messages, in one line and without control characters, since other people choose the
/// names.
pub(crate) fn shown(path: &[u8]) -> String {
    visible(&String::from_utf8_lossy(path)).into_owned()
}

/// The reason why a resource cannot be stored in the folder.
#[derive(Debug)]
pub(crate) enum NoPlace {
    /// The URI cannot be mapped to a path.
    Path(PathError),
    /// A file has the name of a required folder.
    Parent,
    /// A link, pipe, socket or device has the name, or the system denies access.
    Refused(Error),
}

impl From<PathError> for NoPlace {
    fn from(error: PathError) -> Self {
        Self::Path(error)
    }
}

impl From<Error> for NoPlace {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// A resource's place.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: Dir,
    pub(crate) path: Vec<u8>,
    pub(crate) form: Form,
    /// The properties of the existing file.
    pub(crate) found: Option<Stat>,
    name_at: usize,
}

impl Place {
    /// A file that does not belong to a resource of the copy.
    pub(crate) fn of_file(dir: Dir, path: Vec<u8>) -> Self {
        let name_at = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        Self { dir, path, form: Form::Plain, found: None, name_at }
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.path[self.name_at..]
    }

    /// The path for messages.
    pub(crate) fn shown(&self) -> String {
        shown(&self.path)
    }

    /// Reads the properties of the existing file again.
    pub(crate) fn examine(&mut self) -> Result<(), Error> {
        self.found = match self.dir.stat(self.name()) {
            Ok(stat) => Some(stat),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(())
    }
}

/// The folder, as shared by all threads of a run.
#[derive(Debug)]
pub(crate) struct CopyFolder {
    pub(crate) folder: Folder,
    pub(crate) map: PathMap,
    pub(crate) system: FileSystem,
    pub(crate) backup: Backup,
    pub(crate) partials: Partials,
    /// Folders that this run made.
    pub(crate) made: Made,
    /// Whether files can be written without a name and get the name when they are complete; false
    /// after the file system has refused.
    pub(crate) unnamed: AtomicBool,
}

/// The use of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For reading an existing file.
    Look,
    /// For writing a file next to existing files; missing folders are created.
    Put,
    /// For a resource that the copy never contained. In a folder that this run created, nothing is
    /// examined: the file gets its final name only if no other file has the name.
    PutNew,
}

impl CopyFolder {
    /// Whether a file is unchanged since it was written for this row.
    pub(crate) fn is_as_written(&self, row: &Row, found: &Stat) -> bool {
        found.kind == Kind::File
            && found.size == row.length
            && self.system.same_time(row.file_mtime, found.mtime_ns)
    }

    /// The place of a row's file: the path in the row, or the other form of the path if a run was
    /// killed after moving the file.
    pub(crate) fn place_of(
        &self,
        uri: &str,
        row: Option<&Row>,
        last: &mut LastDir,
    ) -> Result<Place, NoPlace> {
        let Some(row) = row.filter(|row| row.leaf) else {
            return self.place(uri, Form::Plain, Purpose::Look, last);
        };
        let place = self.place(uri, Form::Leaf, Purpose::Look, last)?;
        if place.found.is_some() {
            return Ok(place);
        }
        let plain = self.place(uri, Form::Plain, Purpose::Look, last)?;
        let is_moved = plain.found.is_some_and(|found| self.is_as_written(row, &found));
        Ok(if is_moved { plain } else { place })
    }

    /// Finds the place of a URI. A folder in the way means the reserved leaf name.
    pub(crate) fn place(
        &self,
        uri: &str,
        form: Form,
        purpose: Purpose,
        last: &mut LastDir,
    ) -> Result<Place, NoPlace> {
        let mut form = form;
        loop {
            let mut path = Vec::with_capacity(96);
            self.map.path_into(uri, form, &mut path)?;
            let name_at = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
            let dir = last.open(self, &path[..name_at.saturating_sub(1)], purpose)?;
            let mut place = Place { dir, path, form, found: None, name_at };
            if purpose != Purpose::PutNew || !last.made {
                place.examine()?;
            }
            match place.found.map(|stat| stat.kind) {
                None | Some(Kind::File) => return Ok(place),
                Some(Kind::Folder) if form == Form::Plain => form = Form::Leaf,
                Some(_) => {
                    return Err(NoPlace::Refused(
                        place.dir.open_read(place.name()).expect_err("no regular file"),
                    ));
                }
            }
        }
    }
}

/// The folder that one thread used last, as an open handle: items are ordered by path.
#[derive(Debug, Default)]
pub(crate) struct LastDir {
    path: Vec<u8>,
    dir: Option<Dir>,
    /// Whether this run created the folder.
    made: bool,
}

impl LastDir {
    fn open(&mut self, copy: &CopyFolder, path: &[u8], purpose: Purpose) -> Result<Dir, NoPlace> {
        let folder = &copy.folder;
        if path.is_empty() {
            *self = Self::default();
            return Ok(folder.root());
        }
        if self.path == path
            && let Some(dir) = &self.dir
        {
            return Ok(dir.clone());
        }
        let components = || path.split(|byte| *byte == b'/');
        let mut opened = folder.dir(components());
        let mut first_made = None;
        if purpose != Purpose::Look
            && opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
        {
            opened = make_all(&folder.root(), components(), &mut first_made);
        }
        let dir = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFolder => NoPlace::Parent,
            _ => NoPlace::Refused(error),
        })?;
        path.clone_into(&mut self.path);
        self.dir = Some(dir.clone());
        if let Some(first) = first_made {
            let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
            for end in ends.chain([path.len()]).skip(first) {
                copy.made.add(&path[..end]);
            }
        }
        self.made = first_made.is_some() || copy.made.has(path);
        Ok(dir)
    }
}

/// Opens a folder and creates missing folders on the path. Sets `first_made` to the index of the
/// first created component; all later components were created too.
pub(crate) fn make_all<'a>(
    root: &Dir,
    components: impl Iterator<Item = &'a [u8]>,
    first_made: &mut Option<usize>,
) -> Result<Dir, Error> {
    let mut dir = root.clone();
    for (number, component) in components.enumerate() {
        dir = match dir.dir(component) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match dir.create_dir(component) {
                    Err(error) if error.kind() != ErrorKind::Exists => return Err(error),
                    Ok(()) => drop(first_made.get_or_insert(number)),
                    // Another connection created the folder.
                    Err(_) => *first_made = None,
                }
                dir.dir(component)?
            }
            opened => opened?,
        };
    }
    Ok(dir)
}

/// Folders that this run created, up to a maximum number. They contain only files of this run.
#[derive(Debug, Default)]
pub(crate) struct Made(Mutex<HashSet<Vec<u8>>>);

/// Folders remembered at most.
const MADE_MAX: usize = 4_096;

impl Made {
    fn add(&self, path: &[u8]) {
        let mut paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if paths.len() < MADE_MAX {
            paths.insert(path.to_vec());
        }
    }

    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(path)
    }
}

/// Creates an empty file, and replaces the file that a killed run left.
pub(crate) fn create_temporary(dir: &Dir, name: &[u8]) -> Result<std::fs::File, Error> {
    match dir.create_new(name) {
        Err(error) if error.kind() == ErrorKind::Exists => {
            dir.unlink(name)?;
            dir.create_new(name)
        }
        made => made,
    }
}

/// The folder for locally changed files, to which a run moves them before it replaces or deletes
/// them; created at the first use.
#[derive(Debug)]
pub(crate) struct Backup {
    /// The folder from the options. `None`: a folder in the state folder.
    chosen: Option<PathBuf>,
    state: StateFolder,
    /// The name of this run's folder for replaced files.
    name: String,
    /// The handle of this run's folder, and its path for messages.
    made: OnceLock<(Dir, PathBuf)>,
}

impl Backup {
    pub(crate) const fn new(chosen: Option<PathBuf>, state: StateFolder, name: String) -> Self {
        Self { chosen, state, name, made: OnceLock::new() }
    }

    fn folder(&self) -> Result<&(Dir, PathBuf), Failure> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let (above, path) = if let Some(path) = &self.chosen {
            // An error of the creation is reported when the folder is opened.
            let _ = std::fs::create_dir_all(path);
            let above = Folder::open(path)?.root();
            let mark = above.create_new(BACKUP_MARK.as_bytes());
            if let Err(error) = mark
                && error.kind() != ErrorKind::Exists
            {
                return Err(error.into());
            }
            (above, path.clone())
        } else {
            let path = self.state.path().join("backup");
            let above = self.state.folder("backup");
            (above.map_err(|error| Failure::new(error.code(), error.to_string()))?, path)
        };
        let dir = make_folder(&above, self.name.as_bytes())?;
        Ok(self.made.get_or_init(|| (dir, path.join(&self.name))))
    }

    /// Moves a file to the same relative path in the backup folder; returns the new path.
    pub(crate) fn take(&self, place: &Place) -> Result<PathBuf, Failure> {
        use std::os::unix::ffi::OsStrExt as _;
        let (folder, above) = self.folder()?;
        let parent = &place.path[..place.name_at.saturating_sub(1)];
        let dir = if parent.is_empty() {
            folder.clone()
        } else {
            make_all(folder, parent.split(|byte| *byte == b'/'), &mut None)?
        };
        // A second version in the same run gets a number.
        for number in 0_u32..1_000 {
            let mut name = place.name().to_vec();
            if number > 0 {
                name.truncate(240);
                name.extend_from_slice(format!(".~{number}~").as_bytes());
            }
            match place.dir.rename_noreplace(place.name(), &dir, &name) {
                Err(error) if error.kind() == ErrorKind::Exists => continue,
                Err(error) if error.kind() == ErrorKind::OtherFileSystem => {
                    copy_away(place, &dir, &name)?;
                }
                moved => moved?,
            }
            let mut path = above.clone();
            path.push(std::ffi::OsStr::from_bytes(parent));
            path.push(std::ffi::OsStr::from_bytes(&name));
            return Ok(path);
        }
        place.dir.rename_noreplace(place.name(), &dir, place.name())?;
        Ok(above.clone())
    }
}

fn copy_away(place: &Place, dir: &Dir, name: &[u8]) -> Result<(), Error> {
    let (mut from, stat) = place.dir.open_read(place.name())?;
    let mut to = dir.create_new(name)?;
    let copied = io::copy(&mut from, &mut to).and_then(|_| to.flush()).and_then(|()| to.sync_all());
    if copied.is_err() {
        let _ = dir.unlink(name);
        // The system's word for what failed is lost in the copy; requesting the name again shows
        // the rest.
        return dir.create_new(name).and_then(|_| dir.rename_noreplace(name, dir, name));
    }
    abreast_folder::set_modified(&to, stat.mtime_ns)?;
    place.dir.unlink(place.name())
}

impl From<NoPlace> for Failure {
    fn from(no_place: NoPlace) -> Self {
        match no_place {
            NoPlace::Path(error) => Self::refused(error.code(), error.to_string()),
            NoPlace::Parent => Self::new("path.conflict", "a file stands where a folder is needed"),
            NoPlace::Refused(error) => error.into(),
        }
    }
}
