//! The record of an unfinished migration in its destination.

use crate::maintenance::migrate::value::Value;
use abreast_core::{ErrorKind, LogError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the record's form.
const FORMAT: u32 = 1;

/// The rows of each table that are copied. The record changes in the transaction of the rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    format: u32,
    /// The digest of the source's sets and topics, which shows whether the source is the same.
    pub(crate) from: String,
    tables: BTreeMap<String, TableState>,
    /// The last stored content that was copied.
    #[serde(default)]
    pub(crate) contents_after: Vec<u8>,
}

/// The progress of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableState {
    /// The place of the last copied row in the order of the source.
    pub(crate) after: Option<Vec<Value>>,
    /// Number of copied rows.
    pub(crate) rows: u64,
    /// Whether all rows are copied.
    pub(crate) is_complete: bool,
}

impl State {
    pub(crate) fn new(from: String) -> Self {
        Self { format: FORMAT, from, tables: BTreeMap::new(), contents_after: Vec::new() }
    }

    /// The progress of a table.
    pub(crate) fn table(&self, name: &str) -> TableState {
        self.tables.get(name).cloned().unwrap_or_default()
    }

    pub(crate) fn set_table(&mut self, name: &str, state: TableState) {
        self.tables.insert(name.to_owned(), state);
    }

    /// Reads the record of this or another attempt.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, LogError> {
        let state = serde_json::from_slice::<Self>(bytes).ok();
        state.filter(|state| state.format == FORMAT).ok_or_else(|| {
            LogError::new(
                ErrorKind::Corrupt,
                "the record of the interrupted migration is damaged, or of another version of the program\n  \
                 help: empty the destination, and start the migration again",
            )
        })
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Texts, numbers and lists can always be written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}
