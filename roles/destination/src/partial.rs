//! Large files that were begun, with their version, so that another run can continue them.

use crate::path_map::TEMPORARY_PREFIX;
use crate::place::temporary_name;
use crate::state_folder::{StateFolder, read_text, write_text};
use abreast_folder::Dir;

/// Length from which a file is continued by another run.
pub(crate) const RESUME_BYTES: u64 = 8 << 20;
/// Longest note read.
const NOTE_BYTES_MAX: u64 = 32 << 10;

/// Notes in the state folder, one for each large file that is not whole yet.
#[derive(Debug)]
pub(crate) struct Partials {
    state: StateFolder,
}

/// The folder of the notes.
const FOLDER: &str = "partial";

/// One note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) etag: String,
    pub(crate) uri: String,
    /// The address that the file is requested at.
    pub(crate) url: String,
}

impl Partials {
    pub(crate) const fn new(state: StateFolder) -> Self {
        Self { state }
    }

    /// Notes that a file was begun. Without the note it is begun again, which is not a failure of
    /// the run.
    pub(crate) fn note(&self, uri: &str, url: &str, etag: &str) -> bool {
        let Ok(folder) = self.state.folder(FOLDER) else { return false };
        let mut text = format!("{etag}\n{uri}\n");
        if url != uri {
            text.push_str(url);
            text.push('\n');
        }
        write_text(&folder, &note_name(uri), &text).is_ok()
    }

    /// The entity tag a file was begun with.
    pub(crate) fn etag(&self, uri: &str) -> Option<String> {
        self.note_of(uri).map(|note| note.etag)
    }

    /// As [`Partials::etag`], if the file was requested at that address.
    pub(crate) fn etag_at(&self, uri: &str, url: &str) -> Option<String> {
        self.note_of(uri).filter(|note| note.url == url).map(|note| note.etag)
    }

    fn note_of(&self, uri: &str) -> Option<Note> {
        let folder = self.state.existing_folder(FOLDER)?;
        read(&folder, &note_name(uri)).filter(|note| note.uri == uri)
    }

    pub(crate) fn forget(&self, uri: &str) {
        if let Some(folder) = self.state.existing_folder(FOLDER) {
            let _ = folder.unlink(&note_name(uri));
        }
    }

    /// Every note.
    pub(crate) fn all(&self) -> Vec<Note> {
        let Some(folder) = self.state.existing_folder(FOLDER) else { return Vec::new() };
        let entries = folder.entries().into_iter().flatten().flatten();
        entries.filter_map(|entry| read(&folder, &entry.name)).collect()
    }
}

fn note_name(uri: &str) -> Vec<u8> {
    temporary_name(uri)[TEMPORARY_PREFIX.len()..].to_vec()
}

fn read(folder: &Dir, name: &[u8]) -> Option<Note> {
    let text = read_text(folder, name, NOTE_BYTES_MAX)?;
    let mut lines = text.strip_suffix('\n')?.split('\n').map(str::to_owned);
    let (etag, uri) = (lines.next()?, lines.next()?);
    Some(Note { url: lines.next().unwrap_or_else(|| uri.clone()), etag, uri })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_kept_until_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let partials = Partials::new(StateFolder::at(place.path()).unwrap());
        assert_eq!(partials.etag("http://h/a"), None);
        assert!(partials.note("http://h/a", "http://h/a", "\"v1\""));
        assert_eq!(partials.etag("http://h/a").as_deref(), Some("\"v1\""));
        let (uri, url) = ("http://h/a".to_owned(), "http://h/a".to_owned());
        assert_eq!(partials.all(), [Note { etag: "\"v1\"".to_owned(), uri, url }]);
        // The tag is of the address that was requested.
        assert!(partials.note("http://h/a", "http://h/a.nt", "\"v2\""));
        assert_eq!(partials.etag_at("http://h/a", "http://h/a"), None);
        assert_eq!(partials.etag_at("http://h/a", "http://h/a.nt").as_deref(), Some("\"v2\""));
        partials.forget("http://h/a");
        assert_eq!(partials.all(), []);
    }
}
