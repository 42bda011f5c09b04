//! Which names in a folder are published?

/// Is a file or folder of this name published?
///
/// Not published: names starting with `.` (hidden files, `.git`, the store `.abreast`), and what editors leave
/// behind: names ending with `~`, and `#name#`.
pub fn is_published_name(name: &[u8]) -> bool {
    let hidden = name.first() == Some(&b'.');
    let backup = name.last() == Some(&b'~');
    let autosave = name.len() > 1 && name.first() == Some(&b'#') && name.last() == Some(&b'#');
    !(name.is_empty() || hidden || backup || autosave)
}

/// May this relative path be published: every name on the way, no empty one?
pub(crate) fn is_published_path(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(is_published_name)
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
    fn odd_names_become_encoded_keys() {
        assert_eq!(key_of(b"a b/<&\"'>\n/\xff%41"), "a%20b/%3C&%22'%3E%0A/%FF%2541");
    }
}
