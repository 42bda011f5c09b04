//! The store of shared files, the turn of this node, and the local copies.

use super::cache::Cache;
use super::error::SharedError;
use abreast_core::contents::made::{MadeStore, Turn};
use abreast_core::contents::{Error, ErrorKind};
use abreast_core::{Clock, SystemClock};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time after a failure in which requests do not wait for the store.
const AWAY: Duration = Duration::from_secs(5);

/// Settings of the made files that several nodes share.
#[derive(Clone)]
#[non_exhaustive]
pub struct SharedOptions {
    /// Whether this node may make files; always by default.
    pub turn: Turn,
    /// Interval at which the records of other nodes are read; 2 seconds by default.
    pub poll: Duration,
    /// Total length in bytes of local copies above which the least recently used are removed; 16 GiB
    /// by default. A single file may exceed it.
    pub cache_bytes: u64,
    /// Time for which a file remains in the store after no record lists it, for nodes that read the
    /// record before; 10 minutes by default.
    pub grace: Duration,
    /// The clock of all nodes; the clock of this machine by default.
    pub clock: Arc<dyn Clock>,
}

impl Default for SharedOptions {
    fn default() -> Self {
        Self {
            turn: Arc::new(|| true),
            poll: Duration::from_secs(2),
            cache_bytes: 16 << 30,
            grace: Duration::from_secs(10 * 60),
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for SharedOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { poll, cache_bytes, grace, .. } = self;
        f.debug_struct("SharedOptions")
            .field("poll", poll)
            .field("cache_bytes", cache_bytes)
            .field("grace", grace)
            .finish_non_exhaustive()
    }
}

/// The store and the settings that all groups of a node use.
pub(super) struct Place {
    store: Arc<dyn MadeStore>,
    pub(super) options: SharedOptions,
    pub(super) cache: Arc<Cache>,
    /// Time of the last failure after the last success.
    failed: Mutex<Option<Instant>>,
}

impl Place {
    pub(super) fn new(store: Arc<dyn MadeStore>, options: SharedOptions) -> Self {
        let cache = Cache::new(options.cache_bytes);
        Self { store, options, cache, failed: Mutex::default() }
    }

    pub(super) fn is_mine(&self) -> bool {
        (self.options.turn)()
    }

    /// Calls the store, and notes whether it answered.
    pub(super) fn ask<T>(
        &self,
        call: impl FnOnce(&dyn MadeStore) -> Result<T, Error>,
    ) -> Result<T, SharedError> {
        let answer = call(&*self.store);
        let is_away = matches!(&answer, Err(error) if error.kind() == ErrorKind::Busy);
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = is_away.then(Instant::now);
        Ok(answer?)
    }

    /// As [`Self::ask`], for requests: fails at once if the store did not answer a moment ago.
    pub(super) fn ask_soon<T>(
        &self,
        call: impl FnOnce(&dyn MadeStore) -> Result<T, Error>,
    ) -> Result<T, SharedError> {
        self.check_away()?;
        self.ask(call)
    }

    /// A URL with which anybody can read a file for a time; `None` also if the store did not answer a moment
    /// ago, so that copies on this node are used.
    pub(super) fn signed_url(
        &self,
        group: &str,
        name: &str,
        media_type: &str,
        valid: Duration,
    ) -> Result<Option<String>, SharedError> {
        if self.check_away().is_err() {
            return Ok(None);
        }
        Ok(self.store.signed_url(group, name, media_type, valid)?)
    }

    /// Fails if the store did not answer a moment ago.
    pub(super) fn check_away(&self) -> Result<(), SharedError> {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match failed {
            Some(failed) if failed.elapsed() < AWAY => Err(SharedError::Away),
            _ => Ok(()),
        }
    }
}
