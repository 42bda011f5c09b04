//! Access of documents to the heads of logs.

use crate::publish::PublishedSet;
use abreast_core::{ChangeLog, ErrorKind, Head, LogError};

/// Reader of the heads of logs, from the store or only from memory.
#[derive(Clone, Copy)]
pub struct HeadReader<'a> {
    log: &'a dyn ChangeLog,
    may_block: bool,
}

impl<'a> HeadReader<'a> {
    /// Reader that may read the store, for a thread that may block.
    pub const fn stored(log: &'a dyn ChangeLog) -> Self {
        Self { log, may_block: true }
    }

    /// Reader of cached heads; returns an error for any other head.
    pub const fn known(log: &'a dyn ChangeLog) -> Self {
        Self { log, may_block: false }
    }

    /// Head of the log of a set.
    ///
    /// # Errors
    /// The store fails, or the head is not in memory and the store must not be read.
    pub fn of(self, set: &PublishedSet) -> Result<Head, LogError> {
        if self.may_block {
            return self.log.head_for_documents(set.id);
        }
        let unknown =
            || LogError::new(ErrorKind::Busy, "the store must be asked for the head of the log");
        self.log.known_head(set.id).ok_or_else(unknown)
    }
}
