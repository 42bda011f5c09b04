//! The names and paths of a folder that are published.

use crate::hash::media_type_of;
use abreast_core::filter::{Decision, Filter, MediaType, Subject};
use abreast_folder::{Folder, Kind, Selection};
use std::path::Path;
use std::sync::Arc;

/// Whether a file or folder of this name is published.
///
/// Not published: names starting with `.` (hidden files, `.git`, the store `.abreast`), and files
/// that editors leave: names ending with `~`, and `#name#`.
pub fn is_published_name(name: &[u8]) -> bool {
    let hidden = name.first() == Some(&b'.');
    let backup = name.last() == Some(&b'~');
    let autosave = name.len() > 1 && name.first() == Some(&b'#') && name.last() == Some(&b'#');
    !(name.is_empty() || hidden || backup || autosave)
}

/// Opens a folder to be published, symbolic links followed or not. A link is followed if it is
/// relative, and leads to something beneath the folder that would be published itself. What the
/// filter leaves out is neither listed nor opened.
///
/// # Errors
/// It cannot be opened; or the system cannot ensure that no link leads outside.
pub fn open_folder(
    path: &Path,
    follow_links: bool,
    filter: &Arc<Filter>,
) -> Result<Folder, abreast_folder::Error> {
    let folder = Folder::open(path)?;
    let folder = if follow_links { folder.following_links(is_published_name)? } else { folder };
    if filter.is_empty() {
        return Ok(folder);
    }
    let filter = Arc::clone(filter);
    Ok(folder.selecting(Selection::new(move |path, kind| match kind {
        Kind::Folder => !filter.leaves_out_folder(path),
        // Hidden names are not subject to rules: links of files are in such.
        _ => !is_published_path(path) || takes(&filter, path),
    })))
}

fn takes(filter: &Filter, path: &[u8]) -> bool {
    let media_type = MediaType::Listed(Some(media_type_of(path)));
    matches!(filter.decide(&Subject { path, media_type, ..Subject::default() }), Decision::Taken(_))
}

/// Checks that a filter can choose what is published.
///
/// # Errors
/// A rule is about URIs, and files are selected by their paths.
pub fn check_filter(filter: &Filter) -> Result<(), String> {
    if filter.needs_uris() {
        return Err(
            "rules for `uri:` apply to copies only (help: use the path in the folder)".to_owned()
        );
    }
    Ok(())
}

/// Longest relative path that is published; a URI of it stays below 8 KiB in most cases.
pub(crate) const MAX_PATH: usize = 3_500;
/// Longest key that the log accepts.
pub(crate) const MAX_KEY: usize = 8_000;

/// The reason why a relative path is too long to be published, if it is.
pub(crate) fn too_long(path: &[u8]) -> Option<String> {
    if path.len() > MAX_PATH {
        return Some(format!("its path is longer than {MAX_PATH} bytes"));
    }
    // An encoded byte takes three.
    let long = path.len() > MAX_KEY / 3 && key_of(path).len() > MAX_KEY;
    long.then(|| format!("its URI is longer than {MAX_KEY} bytes"))
}

/// Whether this relative path may be published: all its names are, and none is empty.
pub(crate) fn is_published_path(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(is_published_name)
}

/// The names of a set's resources: keys in the log, paths in the folder, URIs in documents.
///
/// The key of a resource of the set is its path with each name encoded; in such a key a colon is
/// encoded, too. Any other resource has its absolute URI as its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    resources: String,
}

impl Naming {
    /// With URIs of the set's resources that begin so, ending in `/`.
    #[must_use]
    pub fn new(resources: impl Into<String>) -> Self {
        Self { resources: resources.into() }
    }

    /// Whether this is the key of a resource of the set, and not a URI.
    pub fn is_own(key: &str) -> bool {
        !key.contains(':')
    }

    /// The relative path of a key; `None` for a URI.
    pub fn path(key: &str) -> Option<Vec<u8>> {
        Self::is_own(key).then(|| path_of(key))
    }

    /// The key of a relative path.
    pub fn key(path: &[u8]) -> String {
        key_of(path)
    }

    /// The URI of a key.
    pub fn uri(&self, key: &str) -> String {
        let mut uri = String::with_capacity(self.resources.len() + key.len());
        self.write_uri(key, &mut uri);
        uri
    }

    /// Replaces `out` with the URI of a key.
    pub(crate) fn write_uri(&self, key: &str, out: &mut String) {
        out.clear();
        if Self::is_own(key) {
            out.push_str(&self.resources);
        }
        out.push_str(key);
    }
}

/// The key of a relative path: each name encoded as one segment.
pub(crate) fn key_of(path: &[u8]) -> String {
    let mut key = String::with_capacity(path.len() + 8);
    for (number, name) in path.split(|byte| *byte == b'/').enumerate() {
        if number > 0 {
            key.push('/');
        }
        abreast_webtypes::encode_segment(name, &mut key);
    }
    key
}

/// The relative path of a key that is one of the set's own.
pub(crate) fn path_of(key: &str) -> Vec<u8> {
    let names: Vec<_> = key
        .split('/')
        .map(|segment| abreast_webtypes::decode_segment(segment.as_bytes()))
        .collect();
    names.join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_and_editor_leftovers_are_not_published() {
        for name in [".git", ".abreast", ".x", "a~", "#a#", "", ".", ".."] {
            assert!(!is_published_name(name.as_bytes()), "{name}");
        }
        for name in ["a", "#a", "#", "a#", "~a", "a.b", "-"] {
            assert!(is_published_name(name.as_bytes()), "{name}");
        }
        assert!(!is_published_path(b"a/.git/config"));
        assert!(!is_published_path(b"a//b"));
    }

    #[test]
    fn long_paths_and_paths_with_long_keys_are_refused() {
        assert_eq!(too_long(&[b'a'; MAX_PATH]), None);
        assert!(too_long(&[b'a'; MAX_PATH + 1]).is_some_and(|why| why.contains("path")));
        assert_eq!(too_long(&[0xff; MAX_KEY / 3]), None);
        assert!(too_long(&[0xff; MAX_KEY / 3 + 1]).is_some_and(|why| why.contains("URI")));
    }

    #[test]
    fn own_keys_have_paths_and_uris_of_the_set() {
        let naming = Naming::new("https://example.org/set/r/");
        assert_eq!(naming.uri("a%20b/c"), "https://example.org/set/r/a%20b/c");
        assert_eq!(Naming::path("a%20b/c").unwrap(), b"a b/c");
        assert_eq!(Naming::key(b"a b/x:y"), "a%20b/x%3Ay");
        for uri in ["https://example.net/a", "urn:isbn:0451450523"] {
            assert_eq!((naming.uri(uri).as_str(), Naming::path(uri)), (uri, None));
        }
    }

    #[test]
    fn odd_names_become_encoded_keys() {
        let path = b"a b/<&\"'>\n/\xff%41";
        assert_eq!(key_of(path), "a%20b/%3C&%22'%3E%0A/%FF%2541");
        assert_eq!(path_of(&key_of(path)), path);
    }
}
