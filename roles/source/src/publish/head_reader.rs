//! The heads of logs, as a document reads them.

use crate::publish::PublishedSet;
use abreast_core::{ChangeLog, ErrorKind, Head, LogError};

/// The way to the heads of logs: through the store, or only as far as they are in memory.
#[derive(Clone, Copy)]
pub struct HeadReader<'a> {
    log: &'a dyn ChangeLog,
    may_block: bool,
}

impl<'a> HeadReader<'a> {
    /// Reads heads from the store, on a thread that may block.
    pub const fn stored(log: &'a dyn ChangeLog) -> Self {
        Self { log, may_block: true }
    }

    /// Reads only heads that are in memory; any other is an error.
    pub const fn known(log: &'a dyn ChangeLog) -> Self {
        Self { log, may_block: false }
    }

    /// The head of a set's log.
    ///
    /// # Errors
    /// The store fails, or must not be asked.
    pub fn of(self, set: &PublishedSet) -> Result<Head, LogError> {
        if self.may_block {
            return self.log.head(set.id);
        }
        let unknown =
            || LogError::new(ErrorKind::Busy, "the store must be asked for the head of the log");
        self.log.known_head(set.id).ok_or_else(unknown)
    }
}
