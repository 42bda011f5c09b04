//! Representations: the bytes of a set's resources, from the set's folder or from stored contents.
//!
//! If the URI of a resource does not belong to the set ([`Naming`]), the bytes are on another
//! server, unless a copy is stored here.

use crate::WatchStatus;
use crate::names::keys::is_published_path;
use crate::names::naming::Naming;
use abreast_core::contents::Content;
use abreast_core::{ContentId, State};
use abreast_folder::{Folder, Kind};
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Function that opens stored contents.
pub type OpenKept = Arc<dyn Fn(&ContentId) -> io::Result<Content> + Send + Sync>;

/// The source of the bytes of a set's resources.
#[derive(Clone, Default)]
pub struct Representations {
    folder: Option<SetFolder>,
    kept: Option<OpenKept>,
    /// The resources are files whose bytes are in stored contents only.
    has_stored_files: bool,
}

impl fmt::Debug for Representations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, kept, has_stored_files } = self;
        f.debug_struct("Representations")
            .field("folder", &folder.is_some())
            .field("kept", &kept.is_some())
            .field("has_stored_files", has_stored_files)
            .finish()
    }
}

/// The folder of a set.
#[derive(Clone)]
struct SetFolder {
    /// Folder at the start of the process; `None` if it was missing.
    opened: Option<Folder>,
    /// State of the watch, which replaces `opened` after each scan.
    watch: Arc<WatchStatus>,
}

/// The bytes of one version of a resource.
#[derive(Debug)]
pub enum Representation {
    /// File of the resource, which may have another state by now.
    File(File),
    /// Stored contents with exactly this state.
    Kept(Content),
    /// The bytes are on another server.
    Elsewhere,
}

impl Representations {
    /// Representations of a set without a folder: only stored contents.
    #[must_use]
    pub fn elsewhere() -> Self {
        Self::default()
    }

    /// Representations from the files of a folder.
    #[must_use]
    pub fn of_folder(opened: Folder, watch: Arc<WatchStatus>) -> Self {
        Self::of_folder_if_there(Some(opened), watch)
    }

    /// Representations from a folder that may be missing at the start.
    #[must_use]
    pub fn of_folder_if_there(opened: Option<Folder>, watch: Arc<WatchStatus>) -> Self {
        Self { folder: Some(SetFolder { opened, watch }), ..Self::default() }
    }

    /// Representations of files that another node may have read: only stored contents.
    #[must_use]
    pub fn of_stored_files() -> Self {
        Self { has_stored_files: true, ..Self::default() }
    }

    /// Whether the resources are files, and their bytes are in stored contents only.
    pub const fn has_stored_files(&self) -> bool {
        self.has_stored_files
    }

    /// Adds a function that opens stored contents, if there is one.
    #[must_use]
    pub fn with_kept(self, kept: Option<OpenKept>) -> Self {
        Self { kept, ..self }
    }

    /// Folder as of the last scan; before the first scan, the folder opened at the start. `None` if
    /// the set does not have a folder, or the folder has never existed.
    pub fn folder(&self) -> Option<Folder> {
        let folder = self.folder.as_ref()?;
        folder.watch.folder().or_else(|| folder.opened.clone())
    }

    /// Whether the folder has been missing since the start.
    pub fn is_absent(&self) -> bool {
        self.folder.is_some() && self.folder().is_none()
    }

    /// Whether the key is in a folder that is never published.
    pub fn hides(&self, key: &str) -> bool {
        let file = self.folder().zip(Naming::path(key));
        file.is_some_and(|(folder, path)| folder.hidden_folder(&path, Kind::File).is_some())
    }

    /// Copy of this value that uses the current folder for all later calls.
    #[must_use]
    pub(crate) fn now(&self) -> Self {
        let folder = self.folder.as_ref().zip(self.folder());
        let folder = folder.map(|(folder, opened)| SetFolder {
            opened: Some(opened),
            watch: Arc::clone(&folder.watch),
        });
        Self { folder: folder.or_else(|| self.folder.clone()), ..self.clone() }
    }

    /// Whether the resources of the set are files of a folder.
    pub const fn has_folder(&self) -> bool {
        self.folder.is_some() || self.has_stored_files
    }

    /// Whether the rules of the set select the resource with this key. The rules apply to files;
    /// every other resource is selected.
    pub fn selects(&self, key: &str) -> bool {
        let file = self.folder().zip(Naming::path(key));
        file.is_none_or(|(folder, path)| folder.selects(&path, Kind::File))
    }

    /// Whether bytes with this state should be available, from the folder or from stored contents.
    pub(crate) fn has(&self, key: &str, state: &State) -> bool {
        (self.folder.is_some() && Naming::is_own(key)) || self.has_kept(state)
    }

    /// Whether these contents are stored. While the store is out of reach, all contents
    /// of the log count as stored.
    pub(crate) fn has_kept(&self, state: &State) -> bool {
        match self.open_kept(state) {
            Ok(found) => found.is_some(),
            Err(error) => error.kind() == io::ErrorKind::ResourceBusy,
        }
    }

    /// Opens the bytes of a resource: the file, or else stored contents with this state.
    ///
    /// # Errors
    /// The file cannot be opened, and contents with this state are not stored.
    pub fn open(&self, key: &str, state: &State) -> Result<Representation, String> {
        let missing = match self.open_file(key) {
            Some(Ok(file)) => return Ok(Representation::File(file)),
            Some(Err(why)) => Err(why),
            None => Ok(Representation::Elsewhere),
        };
        match self.open_kept(state) {
            Ok(Some(kept)) => Ok(Representation::Kept(kept)),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Err(error.to_string()),
            Ok(None) | Err(_) => missing,
        }
    }

    /// Opens the file of a resource; `None` if the resource is not in the folder.
    pub(crate) fn open_file(&self, key: &str) -> Option<Result<File, String>> {
        let (folder, path) = self.folder.as_ref().zip(Naming::path(key))?;
        if !is_published_path(&path) {
            return Some(Err("it is not in the published folder".to_owned()));
        }
        let Some(opened) = &folder.opened else {
            return Some(Err("the published folder is missing".to_owned()));
        };
        Some(opened.open_file(&path).map(|(file, _)| file).map_err(|error| error.to_string()))
    }

    /// Opens the stored contents with this state; `None` if there are none.
    ///
    /// # Errors
    /// The contents are stored, but cannot be read.
    pub fn open_kept(&self, state: &State) -> io::Result<Option<Content>> {
        let Some((open, id)) = self.kept.as_ref().zip(state.content.as_ref()) else {
            return Ok(None);
        };
        match open(id) {
            Ok(kept) => Ok(Some(kept)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Like [`Self::open_kept`], but returns `None` on errors, because the bytes may be available
    /// elsewhere.
    pub(crate) fn kept(&self, state: &State) -> Option<Content> {
        self.open_kept(state).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn state(kept: bool) -> State {
        let content = kept.then_some(ContentId([7; 32]));
        State { content, ..State::default() }
    }

    fn text(representation: Representation) -> String {
        let mut text = String::new();
        match representation {
            Representation::File(mut file) => drop(file.read_to_string(&mut text)),
            Representation::Kept(mut kept) => drop(kept.read_to_string(&mut text)),
            Representation::Elsewhere => "elsewhere".clone_into(&mut text),
        }
        text
    }

    #[test]
    fn bytes_come_from_the_folder_else_from_kept_contents() {
        let temporary = tempfile::tempdir().unwrap();
        std::fs::write(temporary.path().join("a"), "file").unwrap();
        let open: OpenKept = Arc::new(|_| Ok(Content::of_bytes(b"kept".to_vec())));
        let folder =
            Representations::of_folder(Folder::open(temporary.path()).unwrap(), Arc::default());
        let both = folder.clone().with_kept(Some(Arc::clone(&open)));
        let records = Representations::elsewhere().with_kept(Some(open));
        let uri = "https://example.net/a";
        assert_eq!(text(both.open("a", &state(true)).unwrap()), "file");
        assert_eq!(text(both.open("gone", &state(true)).unwrap()), "kept");
        assert!(
            folder.open("gone", &state(true)).is_err() && both.open("gone", &state(false)).is_err()
        );
        for set in [&both, &records] {
            assert_eq!(
                text(set.open(uri, &state(true)).unwrap()),
                "kept",
                "whatever its URI looks like"
            );
            assert_eq!(text(set.open(uri, &state(false)).unwrap()), "elsewhere");
            assert!(set.has(uri, &state(true)) && !set.has(uri, &state(false)));
            assert!(
                set.open_kept(&state(true)).unwrap().is_some()
                    && set.open_kept(&state(false)).unwrap().is_none()
            );
        }
        assert_eq!(text(folder.open(uri, &state(true)).unwrap()), "elsewhere");
        assert!(
            folder.has("a", &state(false))
                && folder.folder().is_some()
                && records.folder().is_none()
        );
    }

    #[test]
    fn only_bytes_that_are_not_kept_are_missing() {
        let failing = |kind: io::ErrorKind| -> OpenKept { Arc::new(move |_| Err(kind.into())) };
        let of = |kind| {
            Representations::elsewhere().with_kept(Some(failing(kind))).open_kept(&state(true))
        };
        assert!(of(io::ErrorKind::NotFound).unwrap().is_none());
        for (kind, is_missing) in [
            (io::ErrorKind::ResourceBusy, false),
            (io::ErrorKind::InvalidData, true),
            (io::ErrorKind::NotFound, true),
        ] {
            let set = Representations::of_stored_files().with_kept(Some(failing(kind)));
            assert_eq!(set.has("a", &state(true)), !is_missing, "{kind}");
            assert_eq!(set.open("a", &state(true)).is_ok(), is_missing, "{kind}");
        }
        assert_eq!(of(io::ErrorKind::InvalidData).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(Representations::elsewhere().open_kept(&state(true)).unwrap().is_none());
    }
}
