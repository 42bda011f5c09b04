//! The record of the last complete backup of a store, in the folder of the store.
//!
//! A backup writes the record, and a server reads it for its metrics. Backups do not contain it.

use crate::record::sealed::{read_sealed, write_sealed};
use std::io;
use std::path::Path;

/// When the last complete backup of a store began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastBackup {
    /// Microseconds since 1970, in UTC.
    pub began: i64,
}

impl LastBackup {
    /// File name of the record in the folder of the store.
    pub const NAME: &str = "last-backup";

    /// Reads the record in the folder of a store; `None` if the store has no backup.
    ///
    /// # Errors
    /// It is damaged ([`io::ErrorKind::InvalidData`]), or cannot be read.
    pub fn read(store: &Path) -> io::Result<Option<Self>> {
        let text = match read_sealed(&store.join(Self::NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let began = str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it contains no time");
        began.map(|began| Some(Self { began })).ok_or_else(damaged)
    }

    /// Replaces the record in the folder of a store durably.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(self, store: &Path) -> io::Result<()> {
        write_sealed(&store.join(Self::NAME), self.began.to_string().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_read_as_it_was_written() {
        let store = tempfile::tempdir().unwrap();
        assert_eq!(LastBackup::read(store.path()).unwrap(), None);
        for began in [1_795_892_400_000_001, 1_795_978_800_000_000] {
            LastBackup { began }.write(store.path()).unwrap();
            assert_eq!(LastBackup::read(store.path()).unwrap(), Some(LastBackup { began }));
        }
        std::fs::write(store.path().join(LastBackup::NAME), "yesterday\n").unwrap();
        let error = LastBackup::read(store.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
