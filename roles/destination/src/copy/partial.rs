//! Large files whose transfer was interrupted, with the head of the first response, so that another
//! run can continue the transfer. The response with the rest may lack header fields of the first
//! response, such as `Last-Modified` [rfc9110 §15.3.7].

use crate::copy::names::temporary_name;
use crate::copy::path_map::TEMPORARY_PREFIX;
use crate::copy::state_folder::{StateFolder, read_text, write_text};
use abreast_folder::Dir;

/// Length in bytes from which on another run continues a transfer.
pub(crate) const RESUME_BYTES: u64 = 8 << 20;
/// Maximum length of a note, in bytes.
const NOTE_BYTES_MAX: u64 = 32 << 10;

/// Notes in the state folder, one for each incomplete large file.
#[derive(Debug)]
pub(crate) struct Partials {
    state: StateFolder,
}

/// The folder of the notes.
const FOLDER: &str = "partial";

/// A note about an incomplete file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) etag: String,
    pub(crate) uri: String,
    /// The address that the file is requested at.
    pub(crate) url: String,
    /// Status line and header lines of the first response.
    pub(crate) head: String,
}

impl Note {
    /// The value of a header of the first response.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

impl Partials {
    pub(crate) const fn new(state: StateFolder) -> Self {
        Self { state }
    }

    /// Stores a note about an incomplete file. Without the note, the transfer is restarted, so an
    /// error is not a failure of the run.
    pub(crate) fn note(&self, uri: &str, url: &str, etag: &str, head: &[u8]) -> bool {
        let Ok(folder) = self.state.folder(FOLDER) else { return false };
        let Ok(head) = std::str::from_utf8(head) else { return false };
        let text = format!("{etag}\n{uri}\n{url}\n{head}\n");
        text.len() as u64 <= NOTE_BYTES_MAX && write_text(&folder, &note_name(uri), &text).is_ok()
    }

    /// Whether there is a note about an incomplete file.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.note_of(uri).is_some()
    }

    /// The note of a file, if the file was requested at this address.
    pub(crate) fn note_at(&self, uri: &str, url: &str) -> Option<Note> {
        self.note_of(uri).filter(|note| note.url == url)
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

    /// The notes of all incomplete files.
    pub(crate) fn all(&self) -> Vec<Note> {
        let Some(folder) = self.state.existing_folder(FOLDER) else { return Vec::new() };
        let entries = folder.entries().into_iter().flatten().flatten();
        entries.filter_map(|entry| read(&folder, &entry.name)).collect()
    }
}

fn note_name(uri: &str) -> Vec<u8> {
    temporary_name(uri)[TEMPORARY_PREFIX.len()..].to_vec()
}

/// Parses a note. A note of an earlier version of this program lacks the head, and its transfer is
/// restarted.
fn read(folder: &Dir, name: &[u8]) -> Option<Note> {
    let text = read_text(folder, name, NOTE_BYTES_MAX)?;
    let mut lines = text.strip_suffix('\n')?.splitn(4, '\n').map(str::to_owned);
    let mut next = || lines.next();
    Some(Note { etag: next()?, uri: next()?, url: next()?, head: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_kept_until_forgotten() {
        const HEAD: &str = "HTTP/1.1 200 OK\r\nLast-Modified: then\r\ncontent-type: a/b\r\n";
        let place = tempfile::tempdir().unwrap();
        let partials = Partials::new(StateFolder::at(place.path()).unwrap());
        let (uri, etag) = ("http://h/a", "\"v1\"");
        assert!(!partials.has(uri));
        assert!(partials.note(uri, uri, etag, HEAD.as_bytes()));
        let note = Note { etag: etag.into(), uri: uri.into(), url: uri.into(), head: HEAD.into() };
        assert_eq!((partials.has(uri), partials.note_at(uri, uri)), (true, Some(note.clone())));
        assert_eq!(note.header("last-modified"), Some("then"));
        assert_eq!((note.header("Content-Type"), note.header("etag")), (Some("a/b"), None));
        assert_eq!(partials.all(), [note]);
        // The tag is of the address that was requested.
        assert!(partials.note(uri, "http://h/a.nt", "\"v2\"", HEAD.as_bytes()));
        assert_eq!(partials.note_at(uri, uri), None);
        assert_eq!(partials.note_at(uri, "http://h/a.nt").unwrap().etag, "\"v2\"");
        // Too long to be read again.
        assert!(!partials.note(uri, uri, etag, &vec![b'x'; NOTE_BYTES_MAX as usize]));
        partials.forget(uri);
        assert_eq!(partials.all(), []);
        // As an earlier version wrote it.
        let old = format!("{etag}\n{uri}\n");
        let folder = partials.state.folder(FOLDER).unwrap();
        write_text(&folder, &note_name(uri), &old).unwrap();
        assert!(!partials.has(uri));
    }
}
