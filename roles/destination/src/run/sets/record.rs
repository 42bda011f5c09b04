//! The record of all sets: which set has which folder.

use super::error::SetsError;
use crate::copy::names::SETS_RECORD as RECORD;
use crate::read::SourceSet;
use abreast_folder::{unsealed, write_sealed};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;

/// Longest record read.
const RECORD_BYTES_MAX: u64 = 64 << 20;
/// Longest folder name made of a set's name, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// Which set is in which folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetFolders {
    pub(super) sets: Vec<SetFolder>,
}

/// One set and its folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetFolder {
    pub(super) folder: String,
    pub(super) capability_list: String,
}

impl SetFolders {
    /// Assigns a folder to each set that does not yet have a folder.
    pub(super) fn with(&self, found: &[SourceSet]) -> Self {
        let mut record = self.clone();
        let known: HashSet<String> =
            record.sets.iter().map(|place| place.capability_list.clone()).collect();
        // Some file systems ignore case.
        let mut taken: HashSet<String> =
            record.sets.iter().map(|place| place.folder.to_lowercase()).collect();
        for set in found.iter().filter(|set| !known.contains(&set.url)) {
            let name = folder_name(&set.name);
            let numbered = (2_u64..).map(|number| format!("{name}-{number}"));
            let mut names = std::iter::once(name.clone()).chain(numbered);
            let folder = names.find(|name| taken.insert(name.to_lowercase())).unwrap_or(name);
            record.sets.push(SetFolder { folder, capability_list: set.url.clone() });
        }
        record
    }

    /// Values that others wrote into the file cannot lead to another folder.
    fn is_usable(&self) -> bool {
        let mut names = HashSet::new();
        self.sets.iter().all(|place| {
            folder_name(&place.folder) == place.folder && names.insert(place.folder.to_lowercase())
        })
    }
}

/// A set's name as the name of a folder: letters, digits, `.`, `-` and `_`; never hidden, never
/// empty.
fn folder_name(name: &str) -> String {
    let plain =
        |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let mut folder: String = name.chars().map(plain).collect();
    folder.truncate(NAME_BYTES_MAX);
    if folder.is_empty() || folder.starts_with('.') {
        folder.insert(0, '_');
    }
    folder
}

/// Reads the record; empty before the first run.
pub(super) fn read(state: &Path) -> Result<SetFolders, SetsError> {
    use std::io::Read as _;
    let path = state.join(RECORD);
    let mut text = Vec::new();
    let read = match std::fs::File::open(&path) {
        Ok(file) => file.take(RECORD_BYTES_MAX).read_to_end(&mut text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(SetFolders::default());
        }
        Err(error) => Err(error),
    };
    if let Err(cause) = read {
        return Err(SetsError::Unreadable(path, cause));
    }
    let read = unsealed(&text).ok().and_then(|text| serde_json::from_slice(text).ok());
    read.filter(SetFolders::is_usable).ok_or(SetsError::Damaged(path))
}

/// Writes the record, completely or not at all; the record is durable before any copy is made.
pub(super) fn write(state: &Path, record: &SetFolders) -> Result<(), SetsError> {
    let path = state.join(RECORD);
    let text = serde_json::to_vec_pretty(record).map_err(std::io::Error::from);
    text.and_then(|text| write_sealed(&path, text))
        .map_err(|cause| SetsError::Unwritable(path, cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(name: &str, url: &str) -> SourceSet {
        SourceSet { name: name.to_owned(), url: url.to_owned() }
    }

    #[test]
    fn a_set_keeps_its_folder_whatever_comes_and_goes() {
        let first = SetFolders::default()
            .with(&[set("maps", "http://h/maps/c"), set("Maps", "http://h/Maps/c")]);
        let folders = |record: &SetFolders| {
            record.sets.iter().map(|place| place.folder.clone()).collect::<Vec<_>>()
        };
        assert_eq!(folders(&first), ["maps", "Maps-2"]);
        let second =
            first.with(&[set("Maps", "http://h/Maps/c"), set("maps", "http://other/maps/c")]);
        assert_eq!(folders(&second), ["maps", "Maps-2", "maps-3"]);
        assert_eq!(second.with(&[]), second);
    }

    #[test]
    fn names_of_sets_are_safe_names_of_folders() {
        for (name, folder) in [
            ("papers", "papers"),
            ("", "_"),
            ("..", "_.."),
            (".abreast", "_.abreast"),
            ("a/b\\c", "a_b_c"),
            ("caf\u{e9} \u{202e}", "caf___"),
            ("a%2Fb", "a_2Fb"),
        ] {
            assert_eq!(folder_name(name), folder);
        }
        assert!(folder_name(&"x".repeat(300)).len() <= 100);
    }

    proptest! {
        #[test]
        fn every_set_has_a_folder_of_its_own(names in proptest::collection::vec("[a-cA-C./ -]{0,3}", 0..20)) {
            let found: Vec<_> = names.iter().enumerate().map(|(n, name)| set(name, &format!("http://h/{n}"))).collect();
            let record = SetFolders::default().with(&found);
            prop_assert_eq!(record.sets.len(), found.len());
            prop_assert!(record.is_usable());
        }
    }

    #[test]
    fn a_record_that_was_tampered_with_is_refused() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(read(place.path()).unwrap(), SetFolders::default());
        let record = SetFolders::default().with(&[set("maps", "http://h/maps/c")]);
        write(place.path(), &record).unwrap();
        assert_eq!(read(place.path()).unwrap(), record);
        let right = std::fs::read(place.path().join(RECORD)).unwrap();
        for bit in (0..right.len() * 8).step_by(7) {
            let mut damaged = right.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(place.path().join(RECORD), damaged).unwrap();
            assert!(read(place.path()).unwrap_err().to_string().contains("help:"), "bit {bit}");
        }
        // An earlier version wrote no digest.
        let old = serde_json::to_vec_pretty(&record).unwrap();
        std::fs::write(place.path().join(RECORD), old).unwrap();
        assert_eq!(read(place.path()).unwrap(), record);
        for folder in ["../elsewhere", "/etc", ""] {
            let bad = SetFolders {
                sets: vec![SetFolder { folder: folder.to_owned(), capability_list: String::new() }],
            };
            std::fs::write(place.path().join(RECORD), serde_json::to_vec(&bad).unwrap()).unwrap();
            assert!(read(place.path()).unwrap_err().to_string().contains("help:"), "{folder}");
        }
    }
}
