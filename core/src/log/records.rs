//! Small records that belong to a store as a whole, such as the tokens of its API.

use crate::LogError;

/// Most bytes in the content of a record.
pub const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A record and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number of the record's last change; it grows with each change.
    pub revision: u64,
    /// The content of the record.
    pub bytes: Vec<u8>,
}

/// Small records by name, which several nodes read and change.
///
/// Calls block. A change is durable, and visible to all nodes, when its function returns.
pub trait Records: Send + Sync {
    /// The record with this name, if there is one.
    ///
    /// # Errors
    /// When the store fails.
    fn record(&self, name: &str) -> Result<Option<Record>, LogError>;

    /// The number of a record's last change, 0 if there is no record.
    ///
    /// # Errors
    /// When the store fails.
    fn record_revision(&self, name: &str) -> Result<u64, LogError>;

    /// Replaces a record, if its last change still has this number (0 for a new record). Returns
    /// `false`, and changes nothing, if another node changed it meanwhile.
    ///
    /// # Errors
    /// When the store fails, or the record has more than [`RECORD_BYTES_MAX`] bytes.
    fn replace_record(&self, name: &str, revision: u64, bytes: &[u8]) -> Result<bool, LogError>;
}
