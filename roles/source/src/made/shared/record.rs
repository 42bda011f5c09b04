//! Record of a group of shared files: the published items with their files, and removed files.

use super::error::SharedError;
use abreast_core::contents::made::MadeFile;
use abreast_webtypes::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Form of the record; a program refuses a newer form.
const FORM: u32 = 1;

/// Published items of a group, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedRecord {
    form: u32,
    pub(crate) items: Vec<Item>,
    /// Files that no item lists, until they are deleted.
    pub(super) removed: Vec<Removed>,
    /// What nodes without the turn request from the maker.
    #[serde(default)]
    pub(super) wanted: u8,
    /// Whether the maker found that items cannot be made.
    #[serde(default)]
    pub(crate) impossible: bool,
}

/// A published dump, snapshot, list or other file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Item {
    /// Name of the item; each name is published once.
    pub(crate) name: String,
    /// Description of the item by the projection.
    pub(crate) text: String,
    /// Time in microseconds since 1970 when the item was published.
    pub(crate) made: i64,
    pub(crate) files: Vec<SharedFile>,
}

impl Item {
    /// File with this name.
    pub(crate) fn file(&self, name: &str) -> Option<&SharedFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

/// A file of an item. Files of different attempts have different tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedFile {
    pub(super) token: String,
    pub(crate) name: String,
    pub(crate) length: u64,
    /// Digest of the bytes, as an address of a content.
    id: String,
    /// Modification time in microseconds since 1970, the same on all nodes.
    pub(crate) modified: i64,
}

/// A file that is deleted when the grace time is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Removed {
    /// Name of the file in the group.
    pub(super) key: String,
    /// Time in microseconds since 1970 from which no item lists the file.
    pub(super) at: i64,
}

impl Default for SharedRecord {
    fn default() -> Self {
        Self { form: FORM, items: Vec::new(), removed: Vec::new(), wanted: 0, impossible: false }
    }
}

impl SharedFile {
    pub(super) fn new(token: &str, name: &str, made: &MadeFile, modified: Timestamp) -> Self {
        Self {
            token: token.to_owned(),
            name: name.to_owned(),
            length: made.length,
            id: made.id.to_string(),
            modified: modified.as_micros(),
        }
    }

    /// Key of the file in the group.
    pub(super) fn key(&self) -> String {
        format!("{}/{}", self.token, self.name)
    }

    /// The file in the store; `None` if the digest is not valid.
    pub(super) fn made(&self) -> Option<MadeFile> {
        Some(MadeFile { name: self.key(), length: self.length, id: self.id.parse().ok()? })
    }

    /// Entity tag of the bytes, without quotes; the same on all nodes.
    pub(crate) fn tag(&self) -> String {
        self.id.clone()
    }
}

impl SharedRecord {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, SharedError> {
        let record: Self = serde_json::from_slice(bytes)
            .map_err(|error| SharedError::Record(format!("it is not valid: {error}")))?;
        if record.form != FORM {
            let why = format!(
                "its form is {}, and this version reads form {FORM} (help: update this node)",
                record.form
            );
            return Err(SharedError::Record(why));
        }
        let files = || record.items.iter().flat_map(|item| &item.files);
        let is_valid = |file: &SharedFile| {
            is_plain(&file.token) && is_plain(&file.name) && file.made().is_some()
        };
        match files().find(|file| !is_valid(file)) {
            Some(file) => {
                Err(SharedError::Record(format!("the file `{}` is not valid", file.key())))
            }
            None => Ok(record),
        }
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, SharedError> {
        serde_json::to_vec(self).map_err(|error| SharedError::Record(error.to_string()))
    }

    /// Item with this name.
    pub(crate) fn item(&self, name: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.name == name)
    }

    /// Keys of the files of all items.
    pub(super) fn keys(&self) -> BTreeSet<String> {
        self.items.iter().flat_map(|item| &item.files).map(SharedFile::key).collect()
    }

    /// Tokens of all files of items.
    pub(super) fn tokens(&self) -> BTreeSet<&str> {
        let files = self.items.iter().flat_map(|item| &item.files);
        files.map(|file| file.token.as_str()).collect()
    }

    /// Notes the files that the items of `before` list, and no item lists now.
    pub(super) fn note_removed(&mut self, before: &Self, at: Timestamp) {
        let now = self.keys();
        let at = at.as_micros();
        let gone = before.keys().into_iter().filter(|key| !now.contains(key));
        self.removed.extend(gone.map(|key| Removed { key, at }));
    }
}

/// Whether a text is a file name without a special meaning.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_core::ContentId;

    fn file(token: &str, name: &str) -> SharedFile {
        let id = ContentId([1; 32]);
        let made = MadeFile { name: name.to_owned(), length: 1, id };
        SharedFile::new(token, name, &made, Timestamp::from_seconds(1))
    }

    fn item(name: &str, files: Vec<SharedFile>) -> Item {
        Item { name: name.to_owned(), text: "text".to_owned(), made: 1, files }
    }

    #[test]
    fn a_record_reads_back_and_another_form_is_refused() {
        let record = SharedRecord {
            items: vec![item("a", vec![file("t", "a.zip")])],
            removed: vec![Removed { key: "t/b".to_owned(), at: 2 }],
            wanted: 1,
            ..SharedRecord::default()
        };
        assert_eq!(SharedRecord::parse(&record.to_bytes().unwrap()).unwrap(), record);
        for name in ["", ".", "..", "a/b", ".new", "a b"] {
            let items = vec![item("a", vec![file("t", name)])];
            let bytes = SharedRecord { items, ..SharedRecord::default() }.to_bytes().unwrap();
            assert!(SharedRecord::parse(&bytes).is_err(), "{name}");
        }
        let newer = SharedRecord { form: 2, ..record }.to_bytes().unwrap();
        let error = SharedRecord::parse(&newer).unwrap_err().to_string();
        assert!(error.contains("help: update this node"), "{error}");
        assert!(SharedRecord::parse(b"{").is_err());
    }

    #[test]
    fn a_file_that_a_later_item_lists_is_not_removed() {
        let (part, list) = (file("t", "part"), file("t", "list"));
        let before = SharedRecord {
            items: vec![item("1", vec![list, part.clone()]), item("2", vec![part])],
            ..SharedRecord::default()
        };
        let mut after = before.clone();
        after.items.remove(0);
        after.note_removed(&before, Timestamp::from_seconds(5));
        assert_eq!(after.removed, [Removed { key: "t/list".to_owned(), at: 5_000_000 }]);
    }
}
