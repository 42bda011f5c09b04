//! Pages of folders in static sites: their paths, and where one page ends and the next begins.
//!
//! The path of a page contains the folder and the entry before the first entry. The end of a page
//! depends on its entries only, so that a new file changes a single page, or divides one into two.

use crate::names::naming::Naming;
use crate::projection::routes::PathValue;
use std::fmt::Write as _;

/// Fewest entries of a page that another page follows.
const FEWEST: usize = 100;
/// Most entries of a page whose last entry fits into a path.
const MOST: usize = 400;
/// A page with enough entries ends after one entry in so many.
const ENDS: u8 = 128;
/// Longest text for a folder or an entry in a path: a segment has at most 255 bytes.
const LONGEST: usize = 110;
/// Most entries of a page in all; the Resource List has further ones.
const LIMIT: usize = 5_000;

/// A page of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FolderPage {
    /// Key of the folder, with its last slash; empty for the root.
    pub(super) prefix: String,
    /// The entry after which the page begins, below the folder; empty for the first page.
    pub(super) after: String,
}

/// The position of a page after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageEnd {
    Continue,
    /// The next entry begins a page.
    Ends,
    /// The page is full, and no page can follow.
    Full,
}

impl FolderPage {
    /// The page of a folder from its first entry on.
    pub(super) fn first(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), after: String::new() }
    }

    /// Whether a folder has pages. The files of a folder with a long path are listed in the folder
    /// above.
    pub(super) fn has_pages(prefix: &str) -> bool {
        written(prefix.trim_end_matches('/')).len() <= LONGEST
    }

    /// Whether a page with so many entries ends after this entry.
    pub(super) fn end(entries: usize, name: &str) -> PageEnd {
        if entries >= LIMIT {
            return PageEnd::Full;
        }
        let is_end = || blake3::hash(name.as_bytes()).as_bytes()[0].is_multiple_of(ENDS);
        let is_long_enough = entries >= MOST || entries >= FEWEST && is_end();
        if is_long_enough && written(name).len() <= LONGEST {
            PageEnd::Ends
        } else {
            PageEnd::Continue
        }
    }
}

/// The path in a key with letters that neither URLs nor file systems treat in a special way.
fn written(key: &str) -> String {
    let path = Naming::path(key).unwrap_or_else(|| key.as_bytes().to_vec());
    let mut text = String::with_capacity(path.len());
    for (at, byte) in path.into_iter().enumerate() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || byte == b'.' && at > 0 {
            text.push(char::from(byte));
        } else {
            // Writing to a string succeeds.
            let _ = write!(text, "={byte:02X}");
        }
    }
    text
}

/// The key of a written text.
fn read(text: &str) -> Option<String> {
    let (mut path, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('=') {
        path.extend_from_slice(&rest.as_bytes()[..at]);
        path.push(u8::from_str_radix(rest.get(at + 1..at + 3)?, 16).ok()?);
        rest = &rest[at + 3..];
    }
    path.extend_from_slice(rest.as_bytes());
    match std::str::from_utf8(&path) {
        Ok(uri) if !Naming::is_own(uri) => Some(uri.to_owned()),
        _ => Some(Naming::key(&path)),
    }
}

impl PathValue for FolderPage {
    fn parse(text: &str) -> Option<Self> {
        let (folder, after) = text.split_once('~').unwrap_or((text, ""));
        let prefix = if folder.is_empty() { String::new() } else { read(folder)? + "/" };
        let page = Self { prefix, after: read(after)? };
        let mut own = String::new();
        page.write(&mut own);
        (own == text && !text.is_empty()).then_some(page)
    }

    fn write(&self, path: &mut String) {
        path.push_str(&written(self.prefix.trim_end_matches('/')));
        if !self.after.is_empty() {
            path.push('~');
            path.push_str(&written(&self.after));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(prefix: &str, after: &str) -> String {
        let mut text = String::new();
        FolderPage { prefix: prefix.to_owned(), after: after.to_owned() }.write(&mut text);
        text
    }

    #[test]
    fn pages_are_found_by_their_names() {
        for (prefix, after, expected) in [
            ("letters/", "", "letters"),
            ("letters/1790/", "a%20b.xml", "letters=2F1790~a=20b.xml"),
            ("", "maps/", "~maps=2F"),
            ("K%C3%B6ln/", "~1", "K=C3=B6ln~=7E1"),
            (".well/", ".a", "=2Ewell~=2Ea"),
            ("", "https://museum.example/7", "~https=3A=2F=2Fmuseum.example=2F7"),
        ] {
            assert_eq!(text(prefix, after), expected);
            let page = FolderPage { prefix: prefix.to_owned(), after: after.to_owned() };
            assert_eq!(FolderPage::parse(expected), Some(page));
        }
        for wrong in ["", "~", "a=2", "a=2f", "a=41", "a b", "a~b~c", "a=zz", "=", "a~="] {
            assert_eq!(FolderPage::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn pages_end_by_the_names_of_their_entries() {
        let end = |entries, name: &str| FolderPage::end(entries, name);
        let names: Vec<String> = (0..2_000).map(|number| format!("{number}.xml")).collect();
        let ends = names.iter().filter(|name| end(FEWEST, name) == PageEnd::Ends).count();
        assert!((5..40).contains(&ends), "{ends}");
        assert!(names.iter().all(|name| end(FEWEST - 1, name) == PageEnd::Continue));
        assert!(names.iter().all(|name| end(MOST, name) == PageEnd::Ends));
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(end(MOST, &long), PageEnd::Continue);
        assert_eq!(end(LIMIT, &long), PageEnd::Full);
        assert!(FolderPage::has_pages("a/b/") && !FolderPage::has_pages(&format!("{long}/")));
    }
}
