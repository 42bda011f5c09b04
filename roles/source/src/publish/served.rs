//! The record of the sets that a store was last served with. Other sets in the store are left over from earlier
//! configurations.

use abreast_core::{Finding, Severity};
use abreast_folder::{read_sealed, write_sealed};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The sets that a store was last served with.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct ServedSets {
    /// All sets that the server published.
    pub sets: Vec<ServedSet>,
}

/// A set, and the folder that it publishes.
#[derive(Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct ServedSet {
    /// Name of the set in URLs.
    pub name: String,
    /// The published folder; `None` for sets of records and of endpoints.
    pub folder: Option<PathBuf>,
}

impl ServedSets {
    /// Creates the record of these sets.
    pub fn new(sets: impl IntoIterator<Item = ServedSet>) -> Self {
        Self { sets: sets.into_iter().collect() }
    }

    /// The file of the record in the folder of a store.
    pub fn path(store: &Path) -> PathBuf {
        store.join("served.json")
    }

    /// Reads the record of a store; `None` if it is missing or damaged.
    pub fn read(store: &Path) -> Option<Self> {
        serde_json::from_slice(&read_sealed(&Self::path(store)).ok()?).ok()
    }

    /// Writes the record into the folder of a store.
    ///
    /// # Errors
    /// The file cannot be written, or the path of a folder is not UTF-8 ([`io::ErrorKind::InvalidData`]).
    pub fn write(&self, store: &Path) -> io::Result<()> {
        write_sealed(&Self::path(store), serde_json::to_vec(self)?)
    }

    /// Checks the record of a store for damage. A missing record is not damaged.
    pub fn check(store: &Path) -> Option<Finding> {
        let path = Self::path(store);
        let read = read_sealed(&path);
        read.is_err_and(|error| error.kind() == io::ErrorKind::InvalidData).then(|| Finding {
            severity: Severity::Error,
            rule: "served.record",
            location: path.display().to_string(),
            message: "the record of the sets that were served is damaged".to_owned(),
        })
    }

    /// Whether a set of a store is left over, which means that the last server did not serve it;
    /// `false` if the record is missing.
    pub fn is_left_over(store: &Path) -> impl Fn(&str) -> bool + use<> {
        let record = Self::read(store);
        move |name| {
            record.as_ref().is_some_and(|record| record.sets.iter().all(|set| set.name != name))
        }
    }
}
