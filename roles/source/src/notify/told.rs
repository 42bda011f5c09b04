//! Where did a set's topics begin, and what was told of its documents? A small file, written anew and whole each time.
//!
//! A notification of documents is published first and noted then: after a crash between the two it is told again, which does no harm.

use abreast_core::Position;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What was told of one set; nothing at first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Told {
    /// Where the log stood when the topic of changes was new: what came before is never told.
    pub(super) begun: Option<u64>,
    /// When the last notification was sent, in microseconds; 0 for never.
    pub(super) until: i64,
    /// The digest of the Source Description that was told; empty for none.
    pub(super) source_description: String,
    /// The same of the Capability List.
    pub(super) capability_list: String,
    /// When the log began whose lists were told.
    pub(super) log: Option<i64>,
    /// The last change in the Change List that was told.
    pub(super) position: u64,
    /// The number of the open Change List.
    pub(super) open_page: u64,
    /// The newest Resource List.
    pub(super) newest_list: u64,
    /// When the Resource Dump began.
    pub(super) resource_dump: Option<i64>,
    /// Until when the Change Dump goes.
    pub(super) change_dump: Option<i64>,
    /// The newest document in each archive, by its kind.
    pub(super) archives: BTreeMap<String, u64>,
}

/// What was told of all sets, by their names.
#[derive(Debug, Default)]
pub(super) struct Record {
    path: PathBuf,
    sets: BTreeMap<String, Told>,
    /// Since it was written.
    changed: bool,
}

#[derive(Serialize, Deserialize)]
struct Stored<S> {
    sets: S,
}

impl Record {
    /// Reads the file; nothing was told when there is none.
    pub(super) fn read(path: PathBuf) -> io::Result<Self> {
        let sets = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice::<Stored<_>>(&bytes).map(|stored| stored.sets).map_err(|error| {
                let text = format!(
                    "`{}` is damaged: {error}\n  help: remove it; every document is then told once more",
                    path.display()
                );
                io::Error::new(io::ErrorKind::InvalidData, text)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { path, sets, changed: false })
    }

    /// What was told of all sets, by their names.
    pub(super) fn sets(&self) -> &BTreeMap<String, Told> {
        &self.sets
    }

    pub(super) fn insert(&mut self, slug: &str, told: Told) {
        self.sets.insert(slug.to_owned(), told);
        self.changed = true;
    }

    pub(super) fn remove(&mut self, slug: &str) {
        self.changed |= self.sets.remove(slug).is_some();
    }

    /// Where a topic of changes began: here, if it is new.
    pub(super) fn begun(&mut self, slug: &str, head: Position) -> Position {
        let told = self.sets.entry(slug.to_owned()).or_default();
        self.changed |= told.begun.is_none();
        Position(*told.begun.get_or_insert(head.0))
    }

    /// Writes the file if something is different.
    pub(super) fn note(&mut self) -> io::Result<()> {
        if self.changed {
            self.write()?;
            self.changed = false;
        }
        Ok(())
    }

    fn write(&self) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let mut file = fs::File::create(&new)?;
        file.write_all(&serde_json::to_vec(&Stored { sets: &self.sets })?)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::File::open(folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_known_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.json");
        let mut record = Record::read(path.clone()).unwrap();
        assert!(record.sets.is_empty());
        let archives = BTreeMap::from([("changelist-archive".to_owned(), 7)]);
        let told = Told { until: -1, capability_list: "ab".into(), log: Some(3), archives, ..Told::default() };
        record.insert("set", told.clone());
        record.note().unwrap();
        fs::remove_file(&path).unwrap();
        record.note().unwrap();
        assert!(!path.exists(), "nothing is different");
        record.insert("set", told.clone());
        record.note().unwrap();
        assert_eq!(Record::read(path.clone()).unwrap().sets, BTreeMap::from([("set".to_owned(), told)]));
        // What a newer version notes besides is passed over, what an older one did not note is nothing.
        fs::write(&path, r#"{"sets":{"a":{"position":5,"else":1}},"more":2}"#).unwrap();
        assert_eq!(Record::read(path.clone()).unwrap().sets["a"], Told { position: 5, ..Told::default() });
        fs::write(&path, "{").unwrap();
        assert!(Record::read(path).unwrap_err().to_string().contains("is damaged"));
    }
}
