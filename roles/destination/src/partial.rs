//! Which large files were begun, of which version, so that another run can go on with them?

use crate::place::temporary_name;
use std::path::PathBuf;

/// Bytes from which a file is worth going on with in another run.
pub(crate) const RESUME_BYTES: u64 = 8 << 20;
/// Longest note read.
const NOTE_BYTES_MAX: u64 = 32 << 10;

/// Notes in the state folder, one for each large file that is not whole yet.
#[derive(Debug)]
pub(crate) struct Partials {
    folder: PathBuf,
}

/// One note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) etag: String,
    pub(crate) uri: String,
}

impl Partials {
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, uri: &str) -> PathBuf {
        self.folder.join(String::from_utf8_lossy(&temporary_name(uri)).trim_start_matches(".%~"))
    }

    /// Notes that a file was begun. Without the note it is begun anew: no failure of the run.
    pub(crate) fn note(&self, uri: &str, etag: &str) -> bool {
        std::fs::create_dir_all(&self.folder)
            .and_then(|()| std::fs::write(self.path(uri), format!("{etag}\n{uri}\n")))
            .is_ok()
    }

    /// The entity tag a file was begun with.
    pub(crate) fn etag(&self, uri: &str) -> Option<String> {
        read(&self.path(uri)).filter(|note| note.uri == uri).map(|note| note.etag)
    }

    pub(crate) fn forget(&self, uri: &str) {
        let _ = std::fs::remove_file(self.path(uri));
    }

    /// Every note.
    pub(crate) fn all(&self) -> Vec<Note> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        entries.flatten().filter_map(|entry| read(&entry.path())).collect()
    }
}

fn read(path: &std::path::Path) -> Option<Note> {
    let file = std::fs::File::open(path).ok()?;
    let text = std::io::read_to_string(std::io::Read::take(file, NOTE_BYTES_MAX)).ok()?;
    let (etag, uri) = text.split_once('\n')?;
    let uri = uri.strip_suffix('\n')?;
    Some(Note { etag: etag.to_owned(), uri: uri.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_kept_until_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let partials = Partials::new(place.path().join("partial"));
        assert_eq!(partials.etag("http://h/a"), None);
        assert!(partials.note("http://h/a", "\"v1\""));
        assert_eq!(partials.etag("http://h/a").as_deref(), Some("\"v1\""));
        assert_eq!(partials.all(), [Note { etag: "\"v1\"".to_owned(), uri: "http://h/a".to_owned() }]);
        partials.forget("http://h/a");
        assert_eq!(partials.all(), []);
    }
}
