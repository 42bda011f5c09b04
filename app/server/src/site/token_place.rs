//! The place of an API's tokens: a file, or a record that several nodes share.

use super::tokens::{Token, change_tokens, read_tokens, text_of, tokens_of};
use abreast_core::{LogError, Records};
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Name of the record with the tokens.
const RECORD: &str = "tokens";

/// The place of an API's tokens.
#[derive(Clone)]
pub enum TokenPlace {
    /// A file in the folder of a store.
    File(PathBuf),
    /// A record in the store of several nodes.
    Shared(Arc<dyn Records>),
}

/// A mark of a version of the tokens: inode, length and modification time of a file, or the number
/// of a record.
pub(super) type Seen = (u64, u64, i128);

impl fmt::Debug for TokenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Shared(_) => f.debug_tuple("Shared").finish(),
        }
    }
}

impl TokenPlace {
    /// Reads the tokens; without a file or record there are none.
    ///
    /// # Errors
    /// The tokens are damaged ([`io::ErrorKind::InvalidData`]), or cannot be read.
    pub fn read(&self) -> io::Result<Vec<Token>> {
        match self {
            Self::File(path) => read_tokens(path),
            Self::Shared(records) => match records.record(RECORD).map_err(failed)? {
                Some(record) => tokens_of(&record.bytes),
                None => Ok(Vec::new()),
            },
        }
    }

    /// Changes the tokens. Changes by several processes come one after the other, so that no change
    /// is lost; `change` may be called again with the tokens of another process.
    ///
    /// # Errors
    /// The tokens cannot be read or written, or the change is refused; then they stay as they are.
    pub fn change<T, E: From<io::Error>>(
        &self,
        change: impl Fn(&mut Vec<Token>) -> Result<T, E>,
    ) -> Result<T, E> {
        let records = match self {
            Self::File(path) => return change_tokens(path, change),
            Self::Shared(records) => records,
        };
        loop {
            let record = records.record(RECORD).map_err(failed)?;
            let revision = record.as_ref().map_or(0, |record| record.revision);
            let mut tokens = match record {
                Some(record) => tokens_of(&record.bytes)?,
                None => Vec::new(),
            };
            let changed = change(&mut tokens)?;
            let text = text_of(&tokens)?;
            if records.replace_record(RECORD, revision, &text).map_err(failed)? {
                return Ok(changed);
            }
        }
    }

    /// A mark that changes with the tokens; `None` if there is neither file nor record, or if it
    /// cannot be read.
    pub(super) fn seen(&self) -> Option<Seen> {
        match self {
            Self::File(path) => {
                let stat = std::fs::metadata(path).ok()?;
                let time = i128::from(stat.mtime()) * 1_000_000_000 + i128::from(stat.mtime_nsec());
                Some((stat.ino(), stat.len(), time))
            }
            Self::Shared(records) => {
                let revision = records.record_revision(RECORD).ok()?;
                (revision > 0).then_some((revision, 0, 0))
            }
        }
    }
}

fn failed(error: LogError) -> io::Error {
    io::Error::other(error)
}
