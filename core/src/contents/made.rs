//! The store of made files: files that one node makes, and that every node serves.
//!
//! Files belong to a group, such as the dumps of a set. The record of the group lists the files that
//! are published. The order is: put the files, then replace the record. A crash at any point leaves
//! at most files that no record lists.

use crate::ContentId;
use crate::contents::Error;
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// Maximum length in bytes of the record of a group of made files.
pub const MADE_RECORD_MAX: usize = 64 << 20;

/// Whether this node may make files now. The function returns at once; another node may have the
/// turn after the return.
pub type Turn = Arc<dyn Fn() -> bool + Send + Sync>;

/// A made file in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeFile {
    /// Name in the group: segments of letters, digits, `.`, `-` and `_`, separated by `/`.
    pub name: String,
    /// Length in bytes of the file.
    pub length: u64,
    /// Digest of the bytes of the file.
    pub id: ContentId,
}

/// Answer to a request for the record of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordRead {
    /// The group does not have a record.
    Missing,
    /// The record has the version that the caller knows.
    Same,
    /// The record has another version.
    Changed {
        /// Bytes of the record in the store.
        record: Vec<u8>,
        /// Version of the record, for [`MadeStore::replace_record`].
        version: String,
    },
}

/// A store of made files, which several nodes share. A call may block for a round trip, for a
/// limited time.
///
/// [`testing::made_store_contract`](crate::testing) checks the promises:
///
/// - A file is stored whole or not at all, and compared with its digest when it is put and fetched.
/// - A record is replaced only if it has the expected version: of several nodes that replace the
///   same version, exactly one succeeds.
/// - Every node reads a record or a file as soon as the call that stored it has returned.
/// - Groups are separate: the files of a group are not listed in another group.
/// - A store out of reach is an error that passes
///   ([`ErrorKind::Busy`](crate::contents::ErrorKind::Busy)), after a limited time. A call with this
///   error may have had its effect.
pub trait MadeStore: Send + Sync + fmt::Debug {
    /// Reads the record of a group, unless it has the version `known`.
    ///
    /// # Errors
    /// The store is out of reach or failed, or the record is longer than [`MADE_RECORD_MAX`].
    fn record(&self, group: &str, known: Option<&str>) -> Result<RecordRead, Error>;

    /// Replaces the record of a group if it has the version `expected`; `None` if it must not exist.
    /// Returns the new version, or `None` if the record has another version.
    ///
    /// # Errors
    /// The store is out of reach or failed, or the record is longer than [`MADE_RECORD_MAX`].
    fn replace_record(
        &self,
        group: &str,
        record: &[u8],
        expected: Option<&str>,
    ) -> Result<Option<String>, Error>;

    /// Stores a file, which replaces a file of this name.
    ///
    /// # Errors
    /// The reader failed, or its bytes do not have the length and digest
    /// ([`ErrorKind::Input`](crate::contents::ErrorKind::Input)), or the store is full, out of reach
    /// or failed. The file is not stored.
    fn put(&self, group: &str, file: &MadeFile, reader: &mut dyn Read) -> Result<(), Error>;

    /// Writes the bytes of a file to `to`. After an error, the written bytes must not be used.
    ///
    /// # Errors
    /// The file is not stored ([`ErrorKind::NotFound`](crate::contents::ErrorKind::NotFound)), has
    /// another length or digest ([`ErrorKind::Damaged`](crate::contents::ErrorKind::Damaged)), or
    /// cannot be written, or the store is out of reach or failed.
    fn fetch(&self, group: &str, file: &MadeFile, to: &mut dyn Write) -> Result<(), Error>;

    /// A URL with which anybody can read the bytes of a file by GET, as this media type, until its time is
    /// over; `None` if the store does not sign URLs. Does not check that the file is stored.
    ///
    /// # Errors
    /// The credentials of the store cannot be read.
    fn signed_url(
        &self,
        _group: &str,
        _name: &str,
        _media_type: &str,
        _valid: Duration,
    ) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Removes a file if it is stored.
    ///
    /// # Errors
    /// The store is out of reach or failed.
    fn remove(&self, group: &str, name: &str) -> Result<(), Error>;

    /// Visits the names of all stored files of a group, and the time since each was put.
    ///
    /// # Errors
    /// The store is out of reach or failed.
    fn visit(&self, group: &str, visit: &mut dyn FnMut(&str, Duration)) -> Result<(), Error>;
}
