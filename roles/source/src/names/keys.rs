//! Rules for published names and paths, and the conversion between paths and keys.

/// Whether files and folders with this name are published.
///
/// Names that start with `.` are not published (hidden files, `.git`, the store `.abreast`), nor
/// are temporary files of editors: names that end in `~`, and `#name#`.
///
/// # Examples
/// ```
/// use abreast_source::is_published_name;
///
/// assert!(is_published_name(b"catalogue.xml"));
/// // A hidden folder, and the copy that an editor leaves.
/// assert!(!is_published_name(b".git") && !is_published_name(b"catalogue.xml~"));
/// ```
pub fn is_published_name(name: &[u8]) -> bool {
    let hidden = name.first() == Some(&b'.');
    let backup = name.last() == Some(&b'~');
    let autosave = name.len() > 1 && name.first() == Some(&b'#') && name.last() == Some(&b'#');
    !(name.is_empty() || hidden || backup || autosave)
}

/// Longest published relative path, in bytes; in most cases the URI is then shorter than 8 KiB.
pub(crate) const MAX_PATH: usize = 3_500;
/// Longest key that the log accepts, in bytes.
pub(crate) const MAX_KEY: usize = 8_000;

/// Returns the reason why a relative path is too long to be published; `None` if it is not.
pub(crate) fn too_long(path: &[u8]) -> Option<String> {
    if path.len() > MAX_PATH {
        return Some(format!("its path is longer than {MAX_PATH} bytes"));
    }
    // Encoding expands a byte to three bytes at most.
    let long = path.len() > MAX_KEY / 3 && key_of(path).len() > MAX_KEY;
    long.then(|| format!("its URI is longer than {MAX_KEY} bytes"))
}

/// Whether a relative path may be published: each name is published and not empty.
pub(crate) fn is_published_path(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(is_published_name)
}

/// Encodes a relative path as a key, with each name as a segment.
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

/// Decodes the key of a file to its relative path.
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
}
